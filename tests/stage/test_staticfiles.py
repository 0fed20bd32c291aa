"""Static files and the headers of every response, as the ASGI application gives them."""

import pytest
from django.conf import settings as django_settings
from django.test import AsyncClient, Client

FILE = "/static/css/signalbox.css"


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def async_client():
    return AsyncClient()


async def test_a_static_file_is_streamed_without_a_thread_for_the_request(async_client, settings):
    response = await async_client.get(FILE)
    body = b"".join([part async for part in response.streaming_content])
    assert body == (django_settings.BASE_DIR / FILE.replace("/static", "static", 1).lstrip("/")).read_bytes()
    assert response.headers["Content-Type"].startswith("text/css")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert int(response.headers["Content-Length"]) == len(body)


async def test_a_static_file_that_has_not_changed_is_not_sent_again(async_client):
    first = await async_client.get(FILE)
    async for _ in first.streaming_content:
        pass
    second = await async_client.get(FILE, headers={"If-Modified-Since": first.headers["Last-Modified"]})
    assert second.status_code == 304


async def test_a_head_request_has_no_body(async_client):
    response = await async_client.head(FILE)
    assert response.status_code == 200
    assert int(response.headers["Content-Length"]) > 0


def test_the_same_file_under_wsgi(client):
    response = client.get(FILE)
    assert response.status_code == 200
    assert b"".join(response.streaming_content)


@pytest.mark.parametrize("path", ["/static/no-such.css", "/static/../manage.py", "/static/%2e%2e/manage.py"])
def test_nothing_else_is_served(client, path, db, prefix):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/accounts/login/", "/admin/login/", "/no/such/page/"])
def test_every_page_forbids_inline_script_and_style_and_foreign_sources(client, path, db, prefix):
    policy = client.get(path).headers["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
