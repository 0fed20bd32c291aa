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
from typing import TYPE_CHECKING

from machines.conf import conf

from . import public_addresses
from .errors import BadWebhook, Unreachable
from .public_addresses import Address, explain_inside

if TYPE_CHECKING:
    import httpx

LONGEST = 2000  # characters
MOST = 3  # addresses of one name that are tried
PORTS = {"http": 80, "https": 443}


def check_address(url: str) -> httpx.URL:
    """Return the address as it will be called. Raises BadWebhook, and looks nothing up."""
    import httpx

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


def may_lead_to(host: str, address: Address) -> bool:
    """Tell whether an address that ``host`` has may be connected to, by the settings of this installation."""
    return public_addresses.may_lead_to(host, address, conf.WEBHOOK_HOSTS)


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
