"""A project's own Content-Security-Policy: a page whose scripts it blocks says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from .conftest import _serve, log_in

STRICT = """
from shop.settings import *

MIDDLEWARE = ["strict.Strict", *MIDDLEWARE]


class Strict:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        answer = self.get_response(request)
        answer["Content-Security-Policy"] = POLICY
        return answer


POLICY = "script-src 'none'"
"""


def make(shop: dict[str, str], folder: Path, text: str) -> dict[str, str]:
    """The environment of the shop with a module of settings, ``strict``, in place of its own."""
    (folder / "strict.py").write_text(text)
    return shop | {"DJANGO_SETTINGS_MODULE": "strict", "PYTHONPATH": f"{folder}:{shop['PYTHONPATH']}"}


@pytest.mark.faults  # real processes
def test_a_page_whose_scripts_are_blocked_says_so(shop: dict[str, str], tmp_path: Path, chromium: Browser, asgi: str):
    uvicorn = [sys.executable, "-m", "uvicorn", "shop.asgi:application", "--log-level", "warning"]
    for url in _serve(make(shop, tmp_path, STRICT), tmp_path / "log", lambda fd: [*uvicorn, "--fd", str(fd)]):
        page = chromium.new_context(base_url=url).new_page()
        page.goto("/ops/")
        log_in(page)
        notice = page.locator("[data-scriptless]")
        expect(notice).to_be_visible(timeout=30_000)
        expect(notice).to_contain_text("Scripts do not run on this page")
        page.context.close()
    page = chromium.new_context(base_url=asgi).new_page()
    page.goto("/ops/")
    log_in(page)
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")
    expect(page.locator("[data-scriptless]")).to_have_count(0)
    page.context.close()
