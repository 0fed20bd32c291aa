"""Static files and the headers of every response, as the ASGI application gives them."""

import os
import re

import pytest
from django.contrib.staticfiles.finders import get_finder
from django.test import AsyncRequestFactory, Client

from dashboard.serving.event_loop_views import EventLoopHandler
from dashboard.site import home

FILE = "/static/signalbox/css/shared/tables.css"


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def ask():
    """Asks what answers on the event loop; returns the response and its body."""
    handler, make = EventLoopHandler(), AsyncRequestFactory()

    async def ask(path, method="get", **more):
        request = getattr(make, method)(path, **more)
        request.refusal = None
        response = await handler.get_response_async(request)
        body = b"".join([part async for part in response]) if response.streaming else b""
        response.close()
        return response, body

    return ask


async def test_a_static_file_is_streamed_without_a_thread_for_the_request(ask):
    response, body = await ask(FILE)
    assert body == (home.ROOT / FILE.lstrip("/")).read_bytes()
    assert response.headers["Content-Type"].startswith("text/css")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert int(response.headers["Content-Length"]) == len(body)


async def test_a_static_file_that_has_not_changed_is_not_sent_again(ask):
    first, _ = await ask(FILE)
    second, body = await ask(FILE, headers={"If-Modified-Since": first.headers["Last-Modified"]})
    assert (second.status_code, second.streaming, body) == (304, False, b"")


async def test_a_head_request_has_no_body(ask):
    response, _ = await ask(FILE, "head")
    assert response.status_code == 200
    assert not response.streaming
    assert int(response.headers["Content-Length"]) > 0


def test_the_same_file_under_wsgi(client):
    response = client.get(FILE)
    assert response.status_code == 200
    assert b"".join(response.streaming_content)


@pytest.fixture
def own_file(tmp_path, settings):
    """A static file of our own, in a folder the site serves; sites made from here on know it."""
    settings.STATICFILES_DIRS = [*settings.STATICFILES_DIRS, tmp_path]
    file = tmp_path / "own.css"
    file.write_text("body { color: black }")
    get_finder.cache_clear()
    yield file
    get_finder.cache_clear()


def read(client) -> tuple[int, int, str]:
    """Status, promised length and text of the file of our own."""
    response = client.get("/static/own.css")
    text = b"".join(response.streaming_content).decode() if response.streaming else ""
    return response.status_code, int(response.headers.get("Content-Length", 0)), text


@pytest.mark.parametrize("text", ["body { color: black } a { color: blue }", "a {}", "body { color: white }", ""])
def test_a_file_that_changes_under_a_running_site_is_served_whole(client, own_file, text):
    assert read(client) == (200, 21, "body { color: black }")
    before = own_file.stat().st_mtime
    own_file.write_text(text)
    os.utime(own_file, (before + 5, before + 5))
    assert read(client) == (200, len(text), text)


async def test_a_file_that_changes_is_served_whole_by_the_event_loop_too(own_file, ask):
    await ask("/static/own.css", "head")
    own_file.write_text("a { color: blue }")
    response, body = await ask("/static/own.css")
    assert (int(response.headers["Content-Length"]), body) == (17, b"a { color: blue }")


def test_a_changed_file_is_not_said_to_be_the_old_one(client, own_file):
    first = client.head("/static/own.css")
    own_file.write_text("a { color: blue }")
    again = client.head("/static/own.css", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200


def test_a_compressed_file_beside_it_is_noticed_when_it_changes(client, own_file):
    read(client)
    packed = own_file.with_name("own.css.gz")
    packed.write_bytes(b"packed")
    response = client.head("/static/own.css", headers={"Accept-Encoding": "gzip"})
    assert (response.headers["Content-Encoding"], response.headers["Content-Length"]) == ("gzip", "6")


def test_a_file_that_goes_away_is_not_found_and_found_again_when_it_is_back(client, own_file, db, prefix):
    read(client)
    own_file.unlink()
    assert client.get("/static/own.css").status_code == 404
    own_file.write_text("a {}")
    assert read(client) == (200, 4, "a {}")


@pytest.mark.parametrize("path", ["/static/no-such.css", "/static/../manage.py", "/static/%2e%2e/manage.py"])
def test_nothing_else_is_served(client, path, db, prefix):
    assert client.get(path).status_code == 404


def test_the_icon_a_browser_asks_for_by_itself_is_there(client):
    answer = client.get("/favicon.ico")
    assert answer.status_code == 302
    assert client.head(answer.url).headers["Content-Type"] == "image/svg+xml"


@pytest.mark.parametrize("path", ["/accounts/login/", "/admin/login/", "/no/such/page/"])
def test_every_page_forbids_inline_script_and_style_and_foreign_sources(client, path, db, prefix):
    policy = client.get(path).headers["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'self'( 'nonce-[A-Za-z0-9_-]{22}')?", rules["script-src"])
    assert rules["script-src"] == rules["style-src"]
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
