"""What may be done to a finished SVG on the server: mark parts, and make it stand by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

STYLESHEET = Path(__file__).parents[2] / "static" / "signalbox" / "admin" / "diagram.css"


def lit(svg: str, ids: Iterable[str], mark: str = "current") -> str:
    """Return the same drawing with the class ``mark`` on the parts with these ids. Ids that are not there are passed
    over."""
    for id in ids:
        svg = re.sub(rf'(<g id="{re.escape(id)}" class="[^"]*)"', rf'\1 {mark}"', svg, count=1)
    return svg


def standalone(svg: str) -> str:
    """Return an SVG document that brings its stylesheet along, follows light and dark, and has a background."""
    head, rest = svg.split(">", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}>{_style()}{rest}\n'


@cache
def _style() -> str:
    css = STYLESHEET.read_text(encoding="utf-8")
    ground = ":root { color-scheme: light dark; background: Canvas; color: CanvasText; }"
    return f"<style><![CDATA[\n{ground}\n{css}]]></style>"
