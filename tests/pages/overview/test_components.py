"""The page that shows every component in every state."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pages.reading import read

TEMPLATES = Path(__file__).parents[3] / "templates" / "signalbox"


def test_the_page_stands_still(as_, prefix):
    client = as_("viewer")

    def shown() -> str:
        return re.sub(r'(value|nonce)="[\w=+/-]{20,}"', "", client.get("/components/").content.decode())

    assert shown() == shown()
    assert read(client.get("/components/")).one("h1").text == "Components"


def test_every_kind_of_mark_is_on_it():
    page = (TEMPLATES / "overview/components.html").read_text(encoding="utf-8")
    for part in (
        "notice ok",
        "notice warn",
        "notice stop",
        "overview/_state_counts",
        "shared/_queue_depths",
        "instances/_steps",
        "jobs/_job",
        "shared/_charts",
        "chips",
        "second",
        "sheet",
        "kbd",
    ):
        assert part in page
    for state in ("live", "polling", "stale", "frozen", "offline"):
        assert f'data-state="{state}"' in page
