"""Says which IP addresses a request may not reach. It never resolves a name and never opens a socket."""

from ipaddress import IPv4Address, IPv6Address, ip_network

IPAddress = IPv4Address | IPv6Address

_NAT64 = ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ip_network("2000::/3")

# Attributes of an address, the most telling first: loopback, for one, is private as well.
_KINDS = ("unspecified", "loopback", "link_local", "multicast", "private", "reserved")

# Ranges of the IANA special-purpose registries that Python's versions, and patch releases, judge differently.
_SPECIAL = {
    ip_network("64:ff9b:1::/48"): "reserved",
    ip_network("192.0.0.0/24"): "reserved",
    ip_network("192.88.99.0/24"): "6to4 relay",
    ip_network("2001::/23"): "reserved",
    ip_network("2002::/16"): "6to4",
    ip_network("3fff::/20"): "documentation",
}


def refusal(address: IPAddress) -> str | None:
    """Return why `address` is no public unicast address, as a word such as "loopback"; None if it is one.

    An IPv6 address that stands for an IPv4 one (v4-mapped, NAT64) is judged by the IPv4 address it leads to.
    """
    if isinstance(address, IPv6Address) and (target := _translated(address)) is not None:
        return refusal(target)
    for network, name in _SPECIAL.items():
        if address in network:
            return name
    for kind in _KINDS:
        if getattr(address, f"is_{kind}"):
            return kind.replace("_", "-")
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "reserved"
    # What is left is the shared space behind carrier-grade NAT, 100.64.0.0/10.
    return None if address.is_global else "shared"


def _translated(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that packets for `address` end up at; None if it is an end of its own."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped
