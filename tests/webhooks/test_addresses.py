"""Where a webhook may lead, and that what was judged is what is connected to."""

import asyncio
import ipaddress

import httpx
import pytest

from machines.webhooks.addresses import check_address, resolve
from machines.webhooks.errors import BadWebhook, Unreachable
from machines.webhooks.public_addresses import is_public
from tests.cases import for_each
from tests.configuration import configure

# Azure's and Oracle's are public addresses to Python 3.11; the last ones wrap Azure's.
METADATA = [
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254",
    "fd20:ce::254", "::ffff:168.63.129.16", "64:ff9b::a83f:8110", "2002:a83f:8110::",
]  # fmt: skip
INSIDE = [
    "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "2001::7f00:1", "240.0.0.1", "192.0.2.1", "fec0::1", "64:ff9b:1::7f00:1", "3fff::1", "198.18.0.1",
    "192.0.0.9", "192.88.99.1", "::7f00:1", *METADATA,
]  # fmt: skip
OUTSIDE = ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"]
WRONG = [
    "", "ftp://example.com/", "file:///etc/passwd", "//example.com", "javascript:alert(1)", "gopher://x/",
    "http://user:pw@example.com/", "http://user@example.com/", "http://", "http:///x", "http://example.com/#part",
    "http://example.com:0/", "http://example.com:99999/", "http://exa mple.com/", "http://example.com/\r\nX: y",
    "http://example.com\\@10.0.0.1/", "http://[::1", "x" * 3000, "http://example.com/\x00", None, 7,
    "http://127.1/", "http://0x7f.1/", "http://2130706433/", "http://017700000001/", "http://[::ffff:7f00:1]/",
]  # fmt: skip


@for_each("address", INSIDE)
def test_an_address_inside_is_refused_when_it_is_written_and_when_a_name_leads_there(address, monkeypatch):
    assert not is_public(ipaddress.ip_address(address))
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(BadWebhook, match="SIGNALBOX_WEBHOOK_HOSTS"):
        check_address(f"https://{host}/")
    assert "SIGNALBOX_WEBHOOK_HOSTS" in leads_to(monkeypatch, [address])
    assert "SIGNALBOX_WEBHOOK_HOSTS" in leads_to(monkeypatch, ["93.184.216.34", address])  # one of several


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_outside_is_the_one_connected_to(address, monkeypatch):
    assert leads_to(monkeypatch, [address]) == (f"[{ipaddress.ip_address(address)}]" if ":" in address else address)


def test_a_name_with_several_addresses_leads_to_three_of_them_at_most(monkeypatch):
    assert leads_to(monkeypatch, ["1.1.1.1", "1.1.1.1", "8.8.8.8", "2606:4700::1", "9.9.9.9"]) == (
        "1.1.1.1 8.8.8.8 [2606:4700::1]"
    )


def leads_to(monkeypatch, addresses, url="https://hooks.example/") -> str:
    async def lookup(loop, host, port, **kwargs):
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    async def ask():
        monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", lookup)
        return await resolve(httpx.URL(url))

    try:
        return " ".join(asyncio.run(ask()))
    except Unreachable as error:
        return str(error)


@for_each("url", WRONG)
def test_what_is_no_address_for_a_webhook_is_said(url):
    with pytest.raises(BadWebhook) as caught:
        check_address(url)
    assert (caught.value.field, caught.value.code) == ("url", "SB445")


def test_a_host_that_was_named_may_lie_inside_and_no_other(settings):
    configure(settings, WEBHOOK_HOSTS=["127.0.0.1", "[::1]"])
    assert str(check_address("http://127.0.0.1:80/x?y=1")) == "http://127.0.0.1/x?y=1"
    assert check_address("http://[::1]/").host == "::1"
    with pytest.raises(BadWebhook):
        check_address("http://127.0.0.2/")


def test_a_name_that_is_none_is_an_attempt_that_failed(monkeypatch):
    with pytest.raises(Unreachable, match="looked up"):
        asyncio.run(resolve(httpx.URL("https://nothing.invalid/")))


@for_each("address", METADATA)
def test_a_host_that_was_named_leads_to_no_metadata_service_unless_its_very_address_was(address, settings, monkeypatch):
    configure(settings, WEBHOOK_HOSTS=["hooks.example", "10.0.0.7"])
    assert leads_to(monkeypatch, ["10.0.0.7"]) == "10.0.0.7"
    assert "SIGNALBOX_WEBHOOK_HOSTS" in leads_to(monkeypatch, ["10.0.0.7", address])
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(BadWebhook, match="SIGNALBOX_WEBHOOK_HOSTS"):
        check_address(f"http://{host}/")


@pytest.mark.parametrize("address", ["168.63.129.16", "fd00:ec2::254"])
def test_a_metadata_service_is_open_where_its_address_was_named(address, settings, monkeypatch):
    configure(settings, WEBHOOK_HOSTS=[address])
    host = f"[{address}]" if ":" in address else address
    assert check_address(f"http://{host}/").host == address
    assert leads_to(monkeypatch, [address]) == host


@pytest.mark.parametrize("port", [22, 25, 6379, 5432, 8080, 65535])
def test_other_ports_than_80_and_443_take_a_setting_when_it_is_written_and_when_it_is_sent(port, settings, monkeypatch):
    for host in ("hooks.example", "10.0.0.7"):
        configure(settings, WEBHOOK_HOSTS=["10.0.0.7"])
        url = f"https://{host}:{port}/"
        configure(settings, WEBHOOK_PORTS=[])
        with pytest.raises(BadWebhook, match=rf"port {port} .* 80, 443\..*SIGNALBOX_WEBHOOK_PORTS"):
            check_address(url)
        assert "SIGNALBOX_WEBHOOK_PORTS" in leads_to(monkeypatch, ["93.184.216.34"], url)
        configure(settings, WEBHOOK_PORTS=[port])
        assert check_address(url).port == port
        assert leads_to(monkeypatch, ["93.184.216.34"], url) == "93.184.216.34"


@pytest.mark.parametrize("url", ["https://hooks.example/", "http://hooks.example/", "http://hooks.example:443/",
                                 "https://hooks.example:80/", "https://hooks.example:443/"])  # fmt: skip
def test_ports_80_and_443_are_open_to_both_schemes(url, monkeypatch):
    assert check_address(url).host == "hooks.example"
    assert leads_to(monkeypatch, ["93.184.216.34"], url) == "93.184.216.34"
