"""Checks where a webhook may send: http or https, ports 80 and 443, and only addresses of the public internet.

A name is looked up for each attempt, every address it has is judged, and the one that was judged is the one that is
connected to: a name that answers differently the next time leads nowhere else. ``SIGNALBOX_WEBHOOK_HOSTS`` names hosts
that may lie inside, ``SIGNALBOX_WEBHOOK_PORTS`` further ports. A cloud's metadata service is none of them, unless its
very address is named.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket

import httpx

from machines.conf import conf

from .errors import BadWebhook, Unreachable

LONGEST = 2000  # characters
MOST = 3  # addresses of one name that are tried
PORTS = {"http": 80, "https": 443}
# Addresses that stand for IPv4 addresses of a stranger's choice, which may be inside.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

# What clouds tell a machine about itself, credentials among it, and their link to its agent. Azure's lies in the public
# range; older Pythons take Oracle's for public, too.
METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "169.254.170.2", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192",
         "168.63.129.16"),
    )
)  # fmt: skip
# Special by the registries of IANA, and not known as such by every Python from 3.11 on.
SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "3fff::/20")))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_address(url: str) -> httpx.URL:
    """Return the address as it will be called. Raises BadWebhook, and looks nothing up."""
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
    if (why := _check_port(parsed)) is not None:
        raise BadWebhook("url", why)
    literal = _read_literal(host)
    if literal is not None and not may_lead_to(host, literal):
        raise BadWebhook("url", explain_inside(host))
    return parsed


async def resolve(url: httpx.URL) -> list[str]:
    """Return the addresses to connect to, as a URL names them, the best first. Raises Unreachable, also where one of
    them lies inside."""
    host = url.raw_host.decode("ascii").strip("[]")
    port = url.port or PORTS[url.scheme]
    if (why := _check_port(url)) is not None:
        raise Unreachable(why)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"the name {host} cannot be looked up: {error}") from None
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses:
        raise Unreachable(f"the name {host} has no address")
    if not all(may_lead_to(host, address) for address in addresses):
        raise Unreachable(explain_inside(host))
    named = (f"[{address}]" if address.version == 6 else str(address) for address in addresses)
    return list(dict.fromkeys(named))[:MOST]


def is_allowed(host: str) -> bool:
    """Say whether the settings of this installation name it."""
    return host.strip("[]").lower() in {name.strip("[]").lower() for name in conf.WEBHOOK_HOSTS}


def may_lead_to(host: str, address: Address) -> bool:
    """Tell whether an address that ``host`` has may be connected to. A host that was named leads anywhere but to a
    metadata service, whose own address has to be named for that."""
    if (inner := _unwrap(address)) in METADATA:
        return is_allowed(str(inner))
    return is_allowed(host) or is_public(address)


def is_public(address: Address) -> bool:
    """Tell whether it is of the public internet, and stands for no other that is not."""
    inner = _unwrap(address)
    if inner != address:
        return is_public(inner)
    if isinstance(address, ipaddress.IPv6Address) and (address.teredo is not None or address.is_site_local):
        return False
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local
    listed = address in METADATA or any(address in network for network in SPECIAL)
    return address.is_global and not special and not listed


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for, or itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _check_port(url: httpx.URL) -> str | None:
    """Tell why the port is none for a webhook; None where it is."""
    port, allowed = url.port or PORTS[url.scheme], {*PORTS.values(), *conf.WEBHOOK_PORTS}
    if port in allowed:
        return None
    listed = ", ".join(map(str, sorted(allowed)))
    return f"port {port} is not allowed; allowed: {listed}. An administrator can add ports in SIGNALBOX_WEBHOOK_PORTS"


def _read_literal(host: str) -> Address | None:
    """Return the address that a host is, also in the ways of writing one that resolvers take: 127.1, 0x7f.1,
    2130706433."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fxA-FX.]+", host) else None
    except OSError:
        return None


def explain_inside(host: str) -> str:
    """Say why a host is refused, and who can allow it."""
    return f"{host} is not a public internet address; an administrator can allow it in SIGNALBOX_WEBHOOK_HOSTS"
