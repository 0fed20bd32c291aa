"""Text users wrote, as DOT takes it: it means itself, whatever is in it.

How wide text is, how it wraps, and which of its characters can be drawn at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import graphviz

BACKSLASH = "\N{REVERSE SOLIDUS OPERATOR}"


def literal(text: str) -> str:
    """Return the text as a label that means itself: no escString escapes, no HTML-like label, no character entities."""
    return graphviz.escape(drawable(text).replace("&", "&amp;"))


def literal_lines(lines: Iterable[str]) -> str:
    r"""Return lines set flush left; ``\l`` is how Graphviz ends such a line."""
    return graphviz.nohtml("".join(f"{literal(line)}\\l" for line in lines))


def literal_title(title: str) -> str:
    """Escape a tooltip. Graphviz expands escapes in them twice, so a backslash is replaced by its look-alike."""
    title = title.replace("\\", BACKSLASH)
    return graphviz.nohtml("\\n".join(literal(line) for line in title.split("\n")))


ELLIPSIS = "…"
# What XML 1.0 cannot hold, and NUL, at which Graphviz would stop reading.
UNDRAWABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WIDE = {"W", "F"}
COMBINING = {"Mn", "Me", "Cf"}


def drawable(text: str) -> str:
    """Return the text on one line, with what no XML document may hold replaced by U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(r"[\t\n\r]+", " ", UNDRAWABLE.sub("\ufffd", text))


def columns(text: str) -> int:
    """Return width in columns of a fixed-width font: East Asian characters and emoji take two."""
    return len(text) if text.isascii() else sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in WIDE else 1


# Widths of the characters of DejaVu Sans Bold, in parts of the font's size: of the fonts that browsers take for a
# sans, the widest. All others are at most as wide as a digit.
_NARROW = dict.fromkeys("ijlI|.,' ", 0.38) | dict.fromkeys("ft!:;[]()-/r", 0.5)
_BROAD = dict.fromkeys("mwMW%@", 1.1) | dict.fromkeys("ABCDGHKNOPQRSTUVXYZ&+=<>", 0.84) | dict.fromkeys("→…", 1.0)
WIDTHS = _NARROW | _BROAD
USUAL = 0.72
_ASCII_WIDTHS = {chr(code): WIDTHS.get(chr(code), USUAL) for code in range(128)}


def bold_width(text: str, size: float) -> float:
    """Return width in pixels of bold text, whatever sans font a browser has."""
    if text.isascii():
        return size * sum(map(_ASCII_WIDTHS.__getitem__, text))
    return size * sum(
        WIDTHS.get(each, USUAL * (_width(each) or 0) if ord(each) < 0x370 else _width(each) * 1.0) for each in text
    )


def wrap(text: str, width: int, lines: int, indent: str = "") -> list[str]:
    """Wrap a text into at most ``lines`` lines of at most ``width`` columns, broken at spaces where there are any. What
    does not fit is cut and marked with an ellipsis. Lines after the first start with ``indent``.


    What does not fit is cut and marked with an ellipsis. Lines after the first start with ``indent``.
    """
    rest = drawable(text).strip()
    if rest and columns(rest) <= width:
        return [rest]
    found: list[str] = []
    while rest:
        room = width - (columns(indent) if found else 0)
        if len(found) == lines - 1:
            found.append(shorten(rest, room))
            break
        line, rest = _break(rest, room)
        found.append(line)
    return [found[0], *(indent + line for line in found[1:])] if found else []


def shorten(text: str, width: int) -> str:
    """Return the text, or as much of it as fits with an ellipsis behind it."""
    text = drawable(text)
    if columns(text) <= width:
        return text
    return text[: _fitting(text, width - 1)].rstrip() + ELLIPSIS


def _break(text: str, width: int) -> tuple[str, str]:
    """Return the first line and what is left. A word longer than a line is cut; one that leaves a poor line is, too."""
    if columns(text) <= width:
        return text, ""
    end = _fitting(text, width)
    space = text.rfind(" ", 0, end + 1)
    if space > end // 3:
        end = space
    return text[:end].rstrip(), text[end:].lstrip()


def _fitting(text: str, width: int) -> int:
    """Return how many characters fit into ``width`` columns; at least one, so that wrapping always ends."""
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > width:
            return max(place, 1)
    return len(text)
