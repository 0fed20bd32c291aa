"""A real Chromium, driven by Playwright, on the real site in a process of its own.

One site and one browser serve all tests of this folder, as they serve people: for long, while data comes and goes. What
a page complains of in its console, and what the site writes about an exception, fails the test.

Playwright's synchronous interface keeps an event loop running in this thread while it is open. So it is closed after
the last test here, before a test of coroutines needs the thread, and Django is told meanwhile that its calls are meant.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from dashboard.serving import server
from dashboard.site import stores
from machines.conf.server.guarded import GuardedProcess
from tests.chromium import find_chromium
from tests.configuration import configure
from tests.conftest import remove
from tests.pages.conftest import activation, devices, unhandled, user_of, waiting

__all__ = ["activation", "devices", "unhandled", "user_of", "waiting"]

PASSWORD = "let me in"
# What a browser writes into its console about an answer that is meant to be no 200, and when a page is left early.
MEANT = re.compile(
    r"Failed to load resource: the server responded with a status of (400|404|409|422|429)"
    r"|WebSocket is closed before the connection is established"
)
expect.set_options(timeout=30_000)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    path = find_chromium()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def our_prefix() -> str:
    return f"t{secrets.token_hex(4)}:"


@pytest.fixture(scope="package")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the site writes."""
    return tmp_path_factory.mktemp("site") / "log"


@pytest.fixture(scope="package")
def process(redis_url: str, our_prefix: str, log: Path, django_db_setup: None) -> Iterator[str]:
    """The site under uvicorn, on the tests' database. Gives its URL, without a slash."""
    settings = {
        "REDIS_URL": redis_url,
        "SIGNALBOX_PREFIX": our_prefix,
        "DATABASE_URL": _database_url(),
        "SIGNALBOX_HOME": str(log.parent / "home"),
        "SIGNALBOX_INSIGHT": str(log.parent / "insight"),
        "SECRET_KEY": django_settings.SECRET_KEY,
    }
    with server.listen("127.0.0.1", 0) as listener, log.open("wb") as output:
        command = [sys.executable, Path(__file__).with_name("serve.py"), str(listener.fileno())]
        guarded = GuardedProcess(command, keep=[listener.fileno()], output=output, env=os.environ | settings)
        yield server.address(listener).rstrip("/")
        guarded.stop()


def _database_url() -> str:
    name = connection.settings_dict["NAME"]
    if given := os.environ.get("DATABASE_URL_TEST"):
        return f"{given.rpartition('/')[0]}/{name}"
    return f"sqlite:///{name}"


@pytest.fixture
def prefix(our_prefix: str, redis_url: str, settings) -> Iterator[str]:
    """The same prefix for every test here, since the site keeps running; empty at the start of each."""
    configure(settings, REDIS_URL=redis_url)
    configure(settings, PREFIX=our_prefix)
    settings.CACHES = stores.caches(redis_url, our_prefix)
    yield our_prefix
    with redis.Redis.from_url(redis_url) as client:
        for pattern in (our_prefix, stores.web_prefix(our_prefix)):
            remove(client, pattern)


@pytest.fixture
def site(process: str, log: Path, prefix: str, transactional_db: None) -> Iterator[str]:
    """The URL of the site. Fails when the site met an exception it did not expect."""
    before = log.stat().st_size
    yield process
    written = log.read_bytes()[before:].decode()
    assert "Traceback" not in written, written


@pytest.fixture
def browser(chromium: Browser, site: str) -> Iterator[Callable[..., BrowserContext]]:
    """Makes a browser of its own for each operator; options are Playwright's. Fails when a page of it complained."""
    made: list[BrowserContext] = []
    complaints: list[str] = []

    def one(**options) -> BrowserContext:
        context = chromium.new_context(base_url=site, **options)
        context.on("console", lambda message: _listen(message, complaints))
        context.on("weberror", lambda error: complaints.append(f"an error nobody caught: {error.error}"))
        made.append(context)
        return context

    yield one
    for context in made:
        context.close()
    assert complaints == []


@pytest.fixture
def as_(browser: Callable, user_of: Callable, site: str, settings) -> Callable[..., Page]:
    """An empty page of a browser with the session of a new user of that role."""

    def logged_in(role: str, name: str = "", **options) -> Page:
        client = Client()
        client.force_login(user_of(role, name))
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        context = browser(**options)
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": site}])
        return context.new_page()

    return logged_in


@pytest.fixture
def page(as_: Callable) -> Page:
    """An empty page of an operator."""
    return as_("operator", "alice")


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    with page.expect_navigation():
        page.get_by_role("main").get_by_role("button", name="Log in").click()


def is_live(page: Page) -> None:
    """Waits until the page's connection is up."""
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")


def keys_work(page: Page) -> None:
    """Waits until the page's script is there: a page that was just gone to does not hear keys before."""
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_visible()


def _listen(message, complaints: list[str]) -> None:
    if message.type in ("error", "warning") and not MEANT.search(message.text):
        complaints.append(f"{message.type}: {message.text}")
