"""Which addresses are public: one example from every special range."""

import ipaddress

import pytest

from workers.handlers.addresses import refusal


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("0.1.2.3", "private"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fd00::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%1", "link-local"),
        ("fec0::1", "reserved"),
        ("100.64.0.1", "shared"),
        ("224.0.0.1", "multicast"),
        ("ff0e::1", "multicast"),
        ("198.18.0.1", "private"),
        ("192.0.0.9", "reserved"),
        ("192.88.99.1", "6to4 relay"),
        ("255.255.255.255", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("::ffff:100.64.0.1", "shared"),
        ("::127.0.0.1", "reserved"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b:1::1", "reserved"),
        ("2002:7f00:1::", "6to4"),
        ("2002:808:808::", "6to4"),
        ("2001:db8::1", "private"),
        ("3fff::1", "documentation"),
        ("5f00::1", "reserved"),
    ],
)
def test_addresses_that_are_not_public(address: str, kind: str) -> None:
    """Every special range is refused by name, also behind an IPv6 address that stands for an IPv4 one."""
    assert refusal(ipaddress.ip_address(address)) == kind


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_permitted(address: str) -> None:
    """Public addresses are not refused, also when they are written as IPv6."""
    assert refusal(ipaddress.ip_address(address)) is None


def test_teredo_is_refused() -> None:
    """A Teredo address, which tunnels to any IPv4 address, is not public."""
    assert refusal(ipaddress.ip_address("2001:0:4136:e378::1")) is not None
