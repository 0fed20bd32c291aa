"""The page shown while Redis is away comes back by itself; a form is sent again by a person only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, expect

from dashboard.serving.server import address, listen
from dashboard.site import stores
from machines.catalog import publishing
from machines.conf.server import Server
from machines.conf.server.guarded import GuardedProcess
from tests.configuration import configure

from .conftest import PASSWORD, _database_url, log_in


@pytest.fixture
def server(tmp_path, settings, our_prefix):
    server = Server(tmp_path / "redis").start()
    configure(settings, REDIS_URL=server.url)
    configure(settings, PREFIX=our_prefix)
    settings.CACHES = stores.caches(server.url, our_prefix)
    yield server
    server.stop()


@pytest.fixture
def own_site(server, our_prefix, tmp_path, transactional_db):
    """A site on a Redis that the test may stop. Its URL, without a slash."""
    given = {
        "REDIS_URL": server.url, "SIGNALBOX_PREFIX": our_prefix, "DATABASE_URL": _database_url(),
        "SIGNALBOX_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    with listen("127.0.0.1", 0) as listener, (tmp_path / "log").open("wb") as output:
        command = [sys.executable, Path(__file__).with_name("serve.py"), str(listener.fileno())]
        guarded = GuardedProcess(command, keep=[listener.fileno()], output=output, env=os.environ | given)
        yield address(listener).rstrip("/")
        guarded.stop()


@pytest.fixture
def page(chromium, own_site) -> Page:
    get_user_model().objects.create_superuser("sue", password=PASSWORD)
    context = chromium.new_context(base_url=own_site)
    page = context.new_page()
    log_in(page, "sue")
    expect(page.locator("[data-place=account]")).to_be_visible()
    yield page
    context.close()


def test_a_page_comes_back_by_itself_and_a_form_is_not_sent_again(page, server):
    publishing.publish({"id": "lamp", "initial": "On", "states": {"On": {}}})
    page.goto("/machines/lamp/")
    page.get_by_role("textbox", name="id text").fill("lamp-7")
    server.stop()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Redis unavailable")).to_be_visible()
    other = page.context.new_page()
    other.goto("/workers/")
    expect(other.get_by_role("heading", name="Redis unavailable")).to_be_visible()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    server.start()
    other.bring_to_front()
    expect(other.get_by_role("heading", name="Workers", exact=True)).to_be_visible()
    page.bring_to_front()
    expect(page.locator("[data-outage-text]")).to_have_text("Redis is back. Nothing was sent again.")
    assert "POST" not in sent
    page.get_by_role("button", name="Resend").click()
    expect(page.locator("body")).to_contain_text("lamp-7")
