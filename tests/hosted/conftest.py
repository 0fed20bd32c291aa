"""A shop with settings, templates, accounts and a login of its own, and with Signalbox at ``/ops/``, in processes.

``asgi`` and ``wsgi`` are the URLs of the two ways to serve it. What a page complains of in its console, and a traceback
in the log, fails the test.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis
from playwright.sync_api import Browser, Page, expect

from dashboard.serving import server
from machines.conf.server.guarded import GuardedProcess
from tests.browser.conftest import _listen, chromium
from tests.conftest import remove
from tests.installation.processes import eventually

__all__ = ["chromium"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PASSWORD = "let me in"


@pytest.fixture(scope="package")
def shop_prefix(redis_url: str) -> Iterator[str]:
    prefix = f"t{secrets.token_hex(4)}:"
    yield prefix
    with redis.Redis.from_url(redis_url) as client:
        remove(client, prefix)


@pytest.fixture(scope="package")
def shop(redis_url: str, shop_prefix: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the shop's processes, with its tables made. Nothing of Signalbox's own settings is in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNALBOX", "DJANGO"))}
    environment = kept | {
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "PYTHONPATH": f"{HERE / 'project'}{os.pathsep}{ROOT}",
        "SHOP_DATABASE": str(tmp_path_factory.mktemp("shop") / "shop.sqlite3"),
        "SHOP_REDIS": redis_url,
        "SHOP_PREFIX": shop_prefix,
    }
    run(environment, HERE / "prepare.py")
    return environment


def run(environment: dict[str, str], *command: object, code: int = 0) -> str:
    """Run Python with the shop's environment, in another folder; return what it wrote."""
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def _serve(shop: dict[str, str], log: Path, command: Callable[[int], list[str | Path]]) -> Iterator[str]:
    with server.listen("127.0.0.1", 0) as listener, log.open("wb") as output:
        descriptor = listener.fileno()
        guarded = GuardedProcess(command(descriptor), keep=[descriptor], output=output, env=shop)
        url = server.address(listener).rstrip("/")
        eventually(lambda: _answers(url), "the shop answers")
        yield url
        guarded.stop()
    assert "the shop is broken" in log.read_text() or "Traceback" not in log.read_text(), log.read_text()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/login/", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="package")
def asgi(shop: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    uvicorn = [sys.executable, "-m", "uvicorn", "shop.asgi:application", "--log-level", "warning"]
    yield from _serve(shop, tmp_path_factory.mktemp("asgi") / "log", lambda fd: [*uvicorn, "--fd", str(fd)])


@pytest.fixture(scope="package")
def wsgi(shop: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = [sys.executable, HERE / "serve_wsgi.py"]
    yield from _serve(shop, tmp_path_factory.mktemp("wsgi") / "log", lambda fd: [*script, str(fd)])


@contextmanager
def client_of(url: str, name: str) -> Iterator[httpx.Client]:
    """A client that has logged in on the shop's own login page."""
    with httpx.Client(base_url=url, timeout=60) as client:
        client.get("/login/")
        token = client.cookies["csrftoken"]
        answer = client.post("/login/", data={"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token})
        assert answer.status_code == 302, answer.text
        yield client


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens a page of a new browser at a URL. Fails when a page of it complained."""
    contexts, complaints = [], []

    def opened(url: str, **options: object) -> Page:
        context = chromium.new_context(base_url=url, locale="en-GB", **options)
        context.on("console", lambda message: _listen(message, complaints))
        context.on("weberror", lambda error: complaints.append(f"an error nobody caught: {error.error}"))
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def log_in(page: Page, name: str = "operator") -> None:
    """Log in on the shop's login page, where a page of Signalbox leads a stranger."""
    expect(page.get_by_role("button", name="Enter the shop")).to_be_visible()
    page.locator("#id_username").fill(name)
    page.locator("#id_password").fill(PASSWORD)
    page.get_by_role("button", name="Enter the shop").click()
