"""A real Chromium, driven by Playwright, on the real site. Nothing a page complains of goes unnoticed.

Playwright's synchronous interface keeps an event loop running in this thread while it is open. So it is closed after
the last test of this folder, before any test of coroutines needs the thread, and Django is told meanwhile that its
own calls from here are meant.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.conftest import missing
from tests.pages.conftest import activation, devices, user_of, waiting

__all__ = ["activation", "devices", "user_of", "waiting"]

CHROMIUM = "/usr/bin/chromium"
PASSWORD = "let me in"
# What a browser writes into its console for an answer that is meant to be no 200.
MEANT = re.compile(r"Failed to load resource: the server responded with a status of (400|404|409|422)")
expect.set_options(timeout=5000)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or CHROMIUM
    if not shutil.which(path):
        missing("Chromium", "install it (Debian: apt-get install chromium)")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


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
def as_(browser: Callable, user_of: Callable) -> Callable[..., Page]:
    """A page of a browser in which a new user of that role has logged in."""

    def logged_in(role: str, name: str = "", **options) -> Page:
        user = user_of(role, name)
        page = browser(**options).new_page()
        log_in(page, user.username)
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        return page

    return logged_in


@pytest.fixture
def page(as_: Callable) -> Page:
    """A page of an operator."""
    return as_("operator", "alice")


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Log in").click()


def is_live(page: Page) -> None:
    """Waits until the page's connection is up."""
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")


def _listen(message, complaints: list[str]) -> None:
    if message.type in ("error", "warning") and not MEANT.search(message.text):
        complaints.append(f"{message.type}: {message.text}")
