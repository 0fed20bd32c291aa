"""Text users wrote, as DOT takes it: it means itself, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterable

import graphviz

from .text import drawable

BACKSLASH = "\N{REVERSE SOLIDUS OPERATOR}"


def literal(text: str) -> str:
    """The text as a label that means itself: no escString escapes, no HTML-like label, no character entities."""
    return graphviz.escape(drawable(text).replace("&", "&amp;"))


def literal_lines(lines: Iterable[str]) -> str:
    r"""Lines set flush left; ``\l`` is how Graphviz ends such a line."""
    return graphviz.nohtml("".join(f"{literal(line)}\\l" for line in lines))


def literal_title(title: str) -> str:
    """Graphviz expands escapes in tooltips twice, so a backslash survives in no spelling; its look-alike does."""
    title = title.replace("\\", BACKSLASH)
    return graphviz.nohtml("\\n".join(literal(line) for line in title.split("\n")))
