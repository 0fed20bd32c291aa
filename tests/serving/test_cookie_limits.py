"""A Cookie header that takes long to read is refused before it is read, on every way in."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from dashboard.live.messages import CloseCode
from dashboard.serving import cookie_limits
from tests.live.sockets import Socket

LONG = "a=" + "x" * cookie_limits.MOST_BYTES
ESCAPED = 'a="' + '\\"' * (cookie_limits.MOST_ESCAPES + 1) + '"'


@pytest.fixture
def never_read(monkeypatch):
    """Whatever reads a header that is refused fails the test."""

    def read(text: str) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("django.core.handlers.wsgi.parse_cookie", read)
    monkeypatch.setattr("channels.sessions.parse_cookie", read)


@pytest.mark.parametrize("header", [LONG, ESCAPED, "; ".join(f"c{n}=x" for n in range(2_000))])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/accounts/login/",
        "/admin/",
        "/api/v1/machines",
        "/static/signalbox/js/shared/base.js",
        "/healthz",
        "/nothing/",
    ],
)
def test_it_is_refused_with_a_431_in_words(db, prefix, never_read, path, header):
    for method in ("get", "post"):
        answer = getattr(Client(), method)(path, headers={"Cookie": header})
        assert answer.status_code == 431
        assert "SB715" in answer.content.decode()
        assert "Content-Security-Policy" in answer.headers
        if path.startswith("/api/"):
            assert json.loads(answer.content)["status"] == 431


def test_one_that_other_sites_of_the_host_share_is_read(db, prefix):
    shared = "; ".join(f"other{n}={'x' * 100}" for n in range(60)) + "; quoted=" + '"a \\"b\\" \\054 c"'
    assert len(shared) < cookie_limits.MOST_BYTES
    assert Client().get("/accounts/login/", headers={"Cookie": shared}).status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("header", [LONG, ESCAPED])
async def test_a_socket_with_one_is_closed(engine, never_read, header):
    socket = Socket(header)
    await socket.connect()
    assert await socket.end() == CloseCode.SIGNED_OUT
