"""Takes screenshots of every page of a demo of its own: light, dark and phone.

python -m tests.docs.screenshots --help
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from machines.worker.command.command_line import list_command

WHO = "supervisor"
SETTLED = 700  # ms until figures have come and their highlight is gone
READY_WITHIN = 120.0  # seconds
URL = re.compile(r"Open\s+(http://\S+?)/\s")

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}

ADDRESSES = {
    "overview": "/",
    "wall": "/wall/",
    "machine": "/machines/activation/",
    "machine-heat": "/machines/delivery/?mode=age",
    "chart": "/machines/delivery/",
    "found": "/machines/activation/?state=Waiting#instances",
    "bulk": "/machines/activation/bulk/?state=Waiting&do=fire&event=entitle",
    "versions": "/machines/delivery/versions/",
    "studio": "/machines/delivery/edit/",
    "queues": "/queues/",
    "queue": "/queues/service_activation/devices/?place=dead",
    "errors": "/errors/",
    "alarms": "/alarms/",
    "routes": "/alarms/routes/",
    "bulks": "/bulk/",
    "workers": "/workers/",
    "approvals": "/approvals/",
    "audit": "/audit/",
    "webhooks": "/webhooks/",
    "patterns": "/patterns/",
    "search": "/search/?q=act",
    "account": "/account/",
    "tokens": "/account/tokens/",
    "api": "/api/v1/docs",
}
FIRST = {
    "instance": ("/machines/delivery/", "table.instances tbody th a"),
    "force": ("/machines/activation/?state=Waiting", "table.instances tbody th a"),
    "replay": ("/machines/activation/?state=Active", "table.instances tbody th a"),
}
"""Names of pages of the first instance that a list has."""
BEHIND = {"force": "force/", "replay": "?at=2&with=1"}
NAMES = (*ADDRESSES, *FIRST)


@dataclass(frozen=True, slots=True)
class Wish:
    """``whole``: the page to its end, not just one window; ``after``: seconds of traffic before."""

    folder: Path
    names: tuple[str, ...]
    looks: tuple[str, ...]
    whole: bool = False
    after: float = 60


def take(wish: Wish, say: Callable[[str], None]) -> int:
    """Take the screenshots and write each as ``<name>-<look>.png``. Return how many were written."""
    wish.folder.mkdir(parents=True, exist_ok=True)
    with _run_demo() as (url, password), sync_playwright() as driver:
        say(f"The demo runs at {url}; it is left alone for {wish.after:g} seconds first.")
        time.sleep(wish.after)
        browser = driver.chromium.launch(executable_path=_find_chromium(), args=["--no-sandbox"])
        for look in wish.looks:
            page = browser.new_context(base_url=url, timezone_id="UTC", **LOOKS[look]).new_page()
            _log_in(page, password)
            if look == wish.looks[0]:
                _act(page)
            for name in wish.names:
                _take_screenshot(page, name, wish.folder / f"{name}-{look}.png", wish.whole)
                say(f"  {name}-{look}.png")
        browser.close()
    return len(wish.looks) * len(wish.names)


def _take_screenshot(page: Any, name: str, file: Path, whole: bool) -> None:
    page.goto(_find_address(page, name))
    if name == "force":
        _ask(page, "Active")
    if page.locator("[data-pause]:visible").count():
        page.locator("[data-live][data-state=live]").wait_for()
    page.wait_for_timeout(SETTLED)
    page.screenshot(path=file, full_page=whole, animations="disabled")


def _find_address(page: Any, name: str) -> str:
    if name not in FIRST:
        return ADDRESSES[name]
    listed, link = FIRST[name]
    page.goto(listed)
    return page.locator(link).first.get_attribute("href").partition("?")[0] + BEHIND.get(name, "")


def _ask(page: Any, state: str) -> None:
    page.get_by_label("state", exact=True).select_option(state)
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("reason").fill("the customer proved it by phone")


def _act(page: Any) -> None:
    """Give the audit something to show: force two instances, suspend one."""
    for state in ("Active", "Suspended"):
        page.goto(_find_address(page, "force"))
        _ask(page, state)
        page.locator(".repair-panel button").last.click()
        page.locator("table.steps").wait_for()
    page.goto(_find_address(page, "force").replace("/force/", "/suspend/"))
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("reason").fill("the provider is down")
    page.locator(".repair-panel button").last.click()
    page.locator("table.steps").wait_for()


def _log_in(page: Any, password: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(WHO)
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.locator("h1", has_text="Machines").wait_for()


def _find_chromium() -> str | None:
    """Return the system's Chromium. Without one Playwright takes its own, and says how to install it if it is
    missing."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def _run_demo() -> Iterator[tuple[str, str]]:
    """Run a demo in a folder that is gone afterwards. Yield its URL and the password to log in with."""
    with tempfile.TemporaryDirectory(prefix="signalbox-", ignore_cleanup_errors=True) as home:
        log = Path(home) / "said"
        environment = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
        command = list_command("demo", "--with-parent")
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env=environment | {"SIGNALBOX_HOME": home}, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            url = _read_url(process, log)
            yield url, json.loads((Path(home) / "logins.json").read_text())[WHO]
        finally:
            process.terminate()
            process.wait(30)


def _read_url(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + READY_WITHIN
    while not (found := URL.search(log.read_text())):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the demo did not start:\n{log.read_text()}")
        time.sleep(0.2)
    return found[1]


def main() -> None:
    parser = ArgumentParser(description="Starts a demo of its own, visits every page, and writes pictures.")
    parser.add_argument("folder", nargs="?", default="screenshots", type=Path, help="default: screenshots")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="PAGE")
    parser.add_argument("--looks", nargs="+", choices=LOOKS, default=list(LOOKS))
    parser.add_argument("--whole", action="store_true", help="pages to their end, not only what a window shows")
    parser.add_argument("--after", type=float, default=60, help="seconds the demo runs first (default 60)")
    asked = parser.parse_args()
    wish = Wish(asked.folder, tuple(asked.only), tuple(asked.looks), asked.whole, asked.after)
    print(f"{take(wish, print)} pictures in {asked.folder}")  # noqa: T201


if __name__ == "__main__":
    main()
