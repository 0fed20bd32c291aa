"""Takes the film-strip of a session in a demo of its own: from an alarm to the audit of its repair, frame by frame.

python -m tests.docs.film_strip docs/images/session.jpg
"""

from __future__ import annotations

import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from .screenshots import SETTLED, _find_chromium, _log_in, _run_demo

AFTER = 60.0  # seconds of traffic before the first frame
VIEW = {"width": 1200, "height": 800}
SHEET = {"width": 1500, "height": 780}
STYLE = """body { margin: 0; padding: 12px; display: grid; grid-template-columns: repeat(3, 1fr); gap: 12px;
    background: #16201d; color: #e3eae6; font: 600 15px sans-serif; }
figure { margin: 0; } img { display: block; width: 100%; border-radius: 4px; } figcaption { padding: 6px 2px 0; }"""


def take(file: Path) -> None:
    """Play the session and write its frames as one picture."""
    with _run_demo() as (url, password), sync_playwright() as driver:
        time.sleep(AFTER)
        browser = driver.chromium.launch(executable_path=_find_chromium(), args=["--no-sandbox"])
        page = browser.new_context(base_url=url, timezone_id="UTC", color_scheme="light", viewport=VIEW).new_page()
        _log_in(page, password)
        frames = "".join(
            f'<figure><img src="data:image/png;base64,{b64encode(_shoot(page)).decode()}">'
            f"<figcaption>{number}&ensp;{escape(caption)}</figcaption></figure>"
            for number, caption in enumerate(_play(page), 1)
        )
        sheet = browser.new_page(viewport=SHEET)
        sheet.set_content(f"<style>{STYLE}</style>{frames}", wait_until="load")
        sheet.screenshot(path=file, full_page=True, type="jpeg", quality=72)
        browser.close()


def _shoot(page: Any) -> bytes:
    page.wait_for_timeout(SETTLED)
    return page.screenshot(animations="disabled")


def _play(page: Any) -> Iterator[str]:
    """Yield the caption of each frame while the page shows it."""
    page.goto("/alarms/")
    yield "An alarm names what is wrong, and its error"
    page.goto("/errors/")
    page.locator("table.groups tbody th a").first.click()
    page.locator("#sample").wait_for()
    yield "The error: its trend, a traceback, its jobs"
    page.goto("/errors/retry/")
    page.get_by_label("jobs per second").fill("2")
    page.get_by_label("reason").fill("the suppliers answer again")
    yield "Which jobs are dead, and how fast to retry them"
    page.locator("form.act button").click()
    page.locator("progress:not([value='0'])").first.wait_for()
    yield "The retry, live"
    page.goto("/machines/activation/")
    yield "A machine with its instances, live"
    page.goto("/audit/")
    yield "Who did what, and why"


if __name__ == "__main__":
    take(Path(sys.argv[1]))
