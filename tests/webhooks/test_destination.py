"""Which URLs and addresses outgoing webhooks may reach."""

from __future__ import annotations

import ipaddress

import pytest

from detent.errors import InvalidSetting
from detent.webhooks.destination import AllowList, BlockedAddress, read_url, why_blocked
from prove.security.destinations import BLOCKED, URLS

NOTHING = AllowList("", "443, 8443")

PUBLIC = {"8.8.8.8", "93.184.216.34", "100.63.255.255", "172.15.0.1", "2606:4700::1111", "64:ff9b::808:808"}


@pytest.mark.parametrize("address", sorted(BLOCKED))
def test_an_address_that_is_not_public_is_blocked(address: str) -> None:
    """TW4, S-07"""
    assert why_blocked(ipaddress.ip_address(address)) is not None
    with pytest.raises(BlockedAddress):
        NOTHING.check_addresses(read_url("https://erp.example/"), ["8.8.8.8", address])


@pytest.mark.parametrize("address", sorted(PUBLIC))
def test_a_public_address_is_allowed(address: str) -> None:
    assert why_blocked(ipaddress.ip_address(address)) is None
    assert NOTHING.check_addresses(read_url("https://erp.example/"), [address]) == [address]


def test_python_calls_the_same_addresses_public() -> None:
    """Every network that Python knows as not global is on our list too."""
    for kind in (ipaddress._IPv4Constants, ipaddress._IPv6Constants):  # type: ignore[attr-defined]
        for network in kind._private_networks:
            assert why_blocked(network[0]) is not None, network
            assert why_blocked(network[-1]) is not None, network


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_hides_its_host_or_is_not_allowed_is_refused(url: str) -> None:
    """TW4, S-07: odd spellings, user names, zones, schemes, ports."""
    with pytest.raises(InvalidSetting):
        NOTHING.check_url(read_url(url))


def test_a_url_is_taken_apart() -> None:
    to = read_url("https://ERP.example.:8443/hook/t0ken?shop=7#part")
    assert (to.scheme, to.host, to.port, to.path) == ("https", "erp.example", 8443, "/hook/t0ken?shop=7")
    assert to.origin == "https://erp.example:8443", "the path may hold a secret and is not shown"
    assert read_url("https://[2606:4700::1111]").origin == "https://[2606:4700::1111]"


def test_the_path_is_not_in_the_message() -> None:
    """TW7"""
    for url in ("http://erp.example/t0ken", "https://user:t0ken@erp.example/", "https://erp.example:22/t0ken"):
        with pytest.raises(InvalidSetting) as refusal:
            NOTHING.check_url(read_url(url))
        assert "t0ken" not in str(refusal.value)


def test_the_allow_list_has_hosts_ports_and_networks() -> None:
    """TW4"""
    allow = AllowList("erp.internal:8080, Files.Internal., 10.20.0.0/16, [fd00::5]:9000, 127.0.0.1:5000", "443")
    for url in (
        *("http://erp.internal:8080/", "https://files.internal/", "http://files.internal/", "http://10.20.3.4/"),
        *("https://10.20.3.4/", "http://[fd00::5]:9000/", "http://127.0.0.1:5000/"),
    ):
        allow.check_url(read_url(url))
    for url in (
        *("http://erp.internal/", "http://erp.internal:8081/", "https://10.21.0.1/", "http://127.0.0.1:5001/"),
        *("http://sub.erp.internal:8080/", "https://127.0.0.1/", "http://10.20.3.4:22/"),
    ):
        with pytest.raises(InvalidSetting):
            allow.check_url(read_url(url))
    assert allow.check_addresses(read_url("https://files.internal/"), ["192.168.1.1", "127.0.0.1"])
    assert allow.check_addresses(read_url("https://erp.example/"), ["10.20.255.1"])
    for address in ("169.254.169.254", "0.0.0.0", "224.0.0.1", "::ffff:10.0.0.1"):
        with pytest.raises(BlockedAddress):
            allow.check_addresses(read_url("https://files.internal/"), [address])
    with pytest.raises(BlockedAddress):
        allow.check_addresses(read_url("https://erp.example/"), [])


@pytest.mark.parametrize("wrong", ["erp internal", "10.0.0.1/8", "host:0", "host:70000", "http://host", "*", "a..b"])
def test_a_wrong_entry_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidSetting):
        AllowList(wrong, "443")
    with pytest.raises(InvalidSetting):
        AllowList("", "https")
