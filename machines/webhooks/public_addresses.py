"""Judges addresses: those of the public internet, and all others. Imports nothing of the project, since the process
that sends by apprise starts with it.
"""

import ipaddress
from collections.abc import Iterable

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


def may_lead_to(host: str, address: Address, allowed: Iterable[str]) -> bool:
    """Tell whether an address that ``host`` has may be connected to. A host that is ``allowed`` leads anywhere but to a
    metadata service, whose own address has to be named for that."""
    named = {name.strip("[]").lower() for name in allowed}
    if (inner := _unwrap(address)) in METADATA:
        return str(inner) in named
    return host.strip("[]").lower() in named or is_public(address)


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


def explain_inside(host: str) -> str:
    """Say why a host is refused, and who can allow it."""
    return f"{host} is not a public internet address; an administrator can allow it in SIGNALBOX_WEBHOOK_HOSTS"
