"""Where a webhook may lead: http or https, and only to addresses of the public internet.

A name is looked up for each attempt, every address it has is judged, and the one that was judged is the one that is
connected to: a name that answers differently the next time leads nowhere else. ``SIGNALBOX_WEBHOOK_HOSTS`` names hosts
that may lie inside.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket

import httpx
from django.conf import settings

from .errors import BadWebhook, Unreachable

LONGEST = 2000  # characters
MOST = 3  # addresses of one name that are tried
PORTS = {"http": 80, "https": 443}
# Addresses that stand for IPv4 addresses of somebody's choice, which may be inside.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def checked(url: str) -> httpx.URL:
    """The address as it will be called. Raises BadWebhook, and looks nothing up."""
    if not isinstance(url, str) or not 0 < len(url) <= LONGEST or re.search(r"[\x00-\x20\x7f\\]", url):
        raise BadWebhook("url", f"an address has 1 to {LONGEST} characters, and no spaces, controls or backslashes")
    try:
        parsed = httpx.URL(url)
        host, port = parsed.raw_host.decode("ascii"), parsed.port
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise BadWebhook("url", f"this is no address: {error}") from None
    if parsed.scheme not in PORTS:
        raise BadWebhook("url", "an address begins with https:// or http://")
    if parsed.userinfo:
        raise BadWebhook("url", "an address has no user and no password in it: the signature says who sends")
    if not host or (port is not None and not 0 < port < 65536):
        raise BadWebhook("url", "an address names a host, and a port from 1 to 65535 if any")
    if parsed.fragment:
        raise BadWebhook("url", "an address has no part behind a #: it is not sent")
    literal = _literal(host)
    if literal is not None and not is_allowed(host) and not is_public(literal):
        raise BadWebhook("url", _inside(host))
    return parsed


async def resolved(url: httpx.URL) -> list[str]:
    """The addresses to connect to, as a URL names them, the best first. Raises Unreachable, also where one of them lies
    inside."""
    host = url.raw_host.decode("ascii").strip("[]")
    port = url.port or PORTS[url.scheme]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"the name {host} cannot be looked up: {error}") from None
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses:
        raise Unreachable(f"the name {host} has no address")
    if not is_allowed(host) and not all(is_public(address) for address in addresses):
        raise Unreachable(_inside(host))
    named = (f"[{address}]" if address.version == 6 else str(address) for address in addresses)
    return list(dict.fromkeys(named))[:MOST]


def is_allowed(host: str) -> bool:
    """Whether whoever runs this installation named it."""
    return host.strip("[]").lower() in {name.strip("[]").lower() for name in settings.SIGNALBOX_WEBHOOK_HOSTS}


def is_public(address: Address) -> bool:
    """Whether it is of the public internet, and stands for no other that is not."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local
    return address.is_global and not special


def _literal(host: str) -> Address | None:
    """The address that a host is, also in the ways of writing one that resolvers take: 127.1, 0x7f.1, 2130706433."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fxA-FX.]+", host) else None
    except OSError:
        return None


def _inside(host: str) -> str:
    return (
        f"{host} is no address of the public internet; whoever runs this site can allow it in SIGNALBOX_WEBHOOK_HOSTS"
    )
