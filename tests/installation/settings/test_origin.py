"""Which pages may open a websocket here."""

import pytest

from dashboard.live.sockets.admission import SameOrigin, allows
from tests.cases import for_each


@pytest.fixture(autouse=True)
def hosts(settings):
    settings.ALLOWED_HOSTS = ["box.example.com", "localhost", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example.com", "https://*.apps.example.com"]
    settings.SECURE_PROXY_SSL_HEADER = None
    return settings


@for_each(
    "origin, host, scheme",
    [
        ("http://localhost:8000", "localhost:8000", "ws"),
        ("http://LOCALHOST:8000", "localhost:8000", "ws"),
        ("http://[::1]:8000", "[::1]:8000", "ws"),
        ("http://box.example.com", "box.example.com", "ws"),
        ("http://box.example.com:80", "box.example.com", "ws"),
        ("https://box.example.com", "box.example.com", "wss"),
        ("https://front.example.com", "10.0.0.7:8000", "ws"),
        ("https://a.apps.example.com", "10.0.0.7:8000", "ws"),
    ],
)
def test_a_page_of_this_site_may(origin, host, scheme):
    assert allows(origin, host, scheme)


@for_each(
    "origin, host",
    [
        ("", "localhost:8000"),
        ("null", "localhost:8000"),
        ("http://evil.example.com", "localhost:8000"),
        ("http://localhost:3000", "localhost:8000"),
        ("http://localhost:8000.evil.example.com", "localhost:8000"),
        ("http://localhost:8000@evil.example.com", "localhost:8000"),
        ("https://box.example.com", "box.example.com"),
        ("http://evil.example.com", "evil.example.com"),
        ("http://front.example.com", "localhost:8000"),
        ("https://evilapps.example.com", "localhost:8000"),
        ("file:///etc/passwd", "localhost:8000"),
        ("http://[::1", "localhost:8000"),
        ("http://localhost:port", "localhost:8000"),
    ],
)
def test_a_page_of_another_site_may_not(origin, host):
    assert not allows(origin, host, "ws")


def test_a_proxy_that_ends_tls_hands_on_plain_websockets(hosts):
    hosts.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert allows("https://box.example.com", "box.example.com", "ws")


async def test_a_refused_socket_is_told_the_documented_code():
    sent = []

    async def send(message):
        sent.append(message)

    async def never(*_):
        raise AssertionError("the application must not see it")

    scope = {"type": "websocket", "headers": [(b"origin", b"http://evil.example.com"), (b"host", b"localhost")]}
    await SameOrigin(never)(scope, None, send)
    assert [message.get("code") for message in sent] == [None, 4403]


async def test_an_allowed_socket_goes_on_to_the_application():
    seen = []

    async def application(scope, receive, send):
        seen.append(scope)

    scope = {"type": "websocket", "headers": [(b"origin", b"http://localhost"), (b"host", b"localhost")]}
    await SameOrigin(application)(scope, None, None)
    assert seen == [scope]
