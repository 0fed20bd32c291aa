"""Finds pages of the docs by their headings, where ``SIGNALBOX_DOCS_URL`` says where the docs are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from machines.conf import conf

HEADINGS = Path(__file__).with_name("docs_headings.json")
"""Page -> its headings with their anchors, the first of which is the title."""
LEAST = 3  # characters


@cache
def _read_headings() -> dict[str, list[tuple[str, str]]]:
    return {
        page: [(text, anchor) for text, anchor in found] for page, found in json.loads(HEADINGS.read_text()).items()
    }


def find_docs(asked: str) -> Iterator[tuple[str, str, str]]:
    """Yield heading, title of its page and address, where the heading, or it and the title, have all the words."""
    words = asked.lower().split()
    if not conf.DOCS_URL or len(asked) < LEAST:
        return
    for page, headings in _read_headings().items():
        title = headings[0][0]
        for text, anchor in headings:
            named = text.lower()
            if all(word in f"{named} {title.lower()}" for word in words) and any(word in named for word in words):
                yield text, title, f"{conf.DOCS_URL.rstrip('/')}/{page}.html#{anchor}"
