"""Reads the lines of a diagram, without comments, styles and other lines that only affect the drawing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from machines.formats.report import Report

MAX_LINE = 4000  # characters: a longer line is refused

_COMMENT = re.compile(r"%%")
_DESCRIPTION = re.compile(r"accDescr\s*\{", re.IGNORECASE)  # for screen readers, over several lines
_LOOKS = re.compile(r"(?:direction|classDef|class|style|linkStyle|accTitle|accDescr|scale|hide|click)\b", re.IGNORECASE)
_TITLE = re.compile(r"title\s*:\s*(?P<title>.+)", re.IGNORECASE)
_FRONT = re.compile(r"---\s*$")
_FENCE = re.compile(r"```+\s*\w*\s*$")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"line {self.number}, column 1"


@dataclass(frozen=True, slots=True)
class Source:
    """A diagram taken apart into lines. ``title`` is empty where there is none."""

    lines: list[Line]
    title: str


def read(text: str, report: Report) -> Source:
    lines: list[Line] = []
    title, describing = "", False
    for line in _whole(text, report):
        found = _TITLE.match(line.text)
        if describing or _DESCRIPTION.match(line.text):
            describing = "}" not in line.text
        elif found and not title:
            title = found["title"].strip().strip("\"'")
        elif not _LOOKS.match(line.text) or _is_statement(line.text):
            lines.append(line)
    return Source(lines, title)


def _is_statement(text: str) -> bool:
    """Return whether a line is about a state that is named like a style command.

    Examples are ``Class --> right`` and ``class : text``.
    """
    return re.match(r"[^\s:]+\s*(?:-+>|:(?!:))", text) is not None and not text.startswith(("accTitle", "accDescr"))


def _whole(text: str, report: Report) -> Iterator[Line]:
    """Yield the lines that are not empty."""
    for number, raw in enumerate(_front(text), start=1):
        if len(raw) > MAX_LINE:
            report.add("SB111", f"line {number}, column 1", f"a line of more than {MAX_LINE} characters")
            continue
        line = " ".join(raw.split())
        if line and not _COMMENT.match(line) and not _FENCE.match(line):
            yield Line(number, line)


def _front(text: str) -> Iterator[str]:
    """Yield the text's lines. Of the YAML before the diagram, only the title is kept."""
    inside, begun = False, False
    for line in text.splitlines():
        if not begun and _FRONT.match(line):
            inside = not inside
            yield ""
            begun = not inside
        elif inside:
            yield line if line.startswith("title") else ""
        else:
            begun = begun or bool(line.strip())
            yield line
