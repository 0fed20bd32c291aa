"""Converts a client's address to the network that rate limits count. The server imports it before Django is set up."""

import ipaddress

SLASH_64 = 64  # an IPv6 network that one customer has to themselves


def network_of(address: str) -> str:
    """Return an address as its limit is kept under: an IPv6 one by its /64, one that wraps an IPv4 address as that."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64] or "local"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(found) >> SLASH_64 << SLASH_64, SLASH_64)))
    return str(found)
