"""The lines of a diagram that say something: without comments, looks and whatever else is only for the drawing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from machines.formats.report import Report

MAX_LINE = 4000  # characters: a longer line is no line of a diagram


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


@dataclass(frozen=True, slots=True)
class Syntax:
    """What one of the two languages has around its states.

    ``comment``: how a line begins that is none. ``blocks``: how several lines begin that say nothing about states,
    and how they end. ``looks``: single lines of that kind.
    """

    name: str
    comment: re.Pattern[str]
    blocks: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    looks: re.Pattern[str]
    title: re.Pattern[str]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


MERMAID = Syntax(
    "Mermaid",
    _pattern(r"%%"),
    ((_pattern(r"accDescr\s*\{"), _pattern(r".*\}")),),
    _pattern(r"(?:direction|classDef|class|style|linkStyle|accTitle|accDescr|scale|hide|click)\b"),
    _pattern(r"title\s*:\s*(?P<title>.+)"),
)
PLANTUML = Syntax(
    "PlantUML",
    _pattern(r"'"),
    (
        (_pattern(r"skinparam\b[^{]*\{\s*$"), _pattern(r"\}")),
        (_pattern(r"<style>"), _pattern(r".*</style>")),
        (_pattern(r"(?:json|yaml)\b[^{]*\{\s*$"), _pattern(r"\}\s*$")),
        (_pattern(r"(?:center\s+|left\s+|right\s+)?legend\b"), _pattern(r"end\s?legend")),
        (_pattern(r"(?:center\s+|left\s+|right\s+)?header\s*$"), _pattern(r"end\s?header")),
        (_pattern(r"(?:center\s+|left\s+|right\s+)?footer\s*$"), _pattern(r"end\s?footer")),
        (_pattern(r"title\s*$"), _pattern(r"end\s?title")),
    ),
    _pattern(
        r"(?:skinparam|hide|show|scale|header|footer|caption|mainframe|center\s|left\s|right\s|top\s|allow_?mixing"
        r"|newpage|sprite|@(?:start|end)uml|!(?:theme|pragma|assume))"
    ),
    _pattern(r"title\s+(?P<title>.+)"),
)
_FRONT = re.compile(r"---\s*$")
_FENCE = re.compile(r"```+\s*\w*\s*$")


def read(text: str, syntax: Syntax, report: Report) -> Source:
    """Nested blocks of looks, such as ``skinparam``, count their braces."""
    lines: list[Line] = []
    title, ending, depth = "", None, 0
    for line in _whole(text, syntax, report):
        if ending is not None:
            depth += line.text.count("{") if ending.pattern.startswith("\\}") else 0
            if ending.match(line.text):
                depth -= 1
                ending = None if depth <= 0 else ending
            continue
        found = syntax.title.match(line.text)
        if found and not title:
            title = found["title"].strip().strip("\"'")
            continue
        ending = next((end for start, end in syntax.blocks if start.match(line.text)), None)
        if ending is not None:
            depth = 1
            one_line = ending.match(line.text) is not None and not ending.pattern.startswith("\\}")
            ending = None if one_line else ending
        elif not syntax.looks.match(line.text) or _is_statement(line.text):
            lines.append(line)
    return Source(lines, title)


def _is_statement(text: str) -> bool:
    """Whether a line that begins like a look is about a state of that name: ``Left --> right``, ``class : text``."""
    return re.match(r"[^\s:]+\s*(?:-+(?:\[[^\]]*\]|\w+)?-*>|:(?!:))", text) is not None and not text.startswith(
        ("accTitle", "accDescr", "@", "!")
    )


def _whole(text: str, syntax: Syntax, report: Report) -> Iterator[Line]:
    """Lines that are not empty; of PlantUML those that end with a backslash go on in the next."""
    pending, start, commented = "", 0, False
    for number, raw in enumerate(_front(text, syntax), start=1):
        if len(raw) > MAX_LINE:
            report.add("SB111", f"line {number}, column 1", f"a line of more than {MAX_LINE} characters")
            continue
        line = " ".join(raw.split())
        if syntax is PLANTUML:
            line, commented = _without_block_comment(line, commented)
        if pending:
            line, number_of = f"{pending} {line}", start
        else:
            number_of = number
        if len(line) > MAX_LINE:
            report.add("SB111", f"line {number_of}, column 1", f"a line of more than {MAX_LINE} characters")
            pending = ""
            continue
        if syntax is PLANTUML and line.endswith("\\"):
            pending, start = line[:-1], number_of
            continue
        pending = ""
        if line and not syntax.comment.match(line) and not _FENCE.match(line):
            yield Line(number_of, line)


def _front(text: str, syntax: Syntax) -> Iterator[str]:
    """The text's lines. The YAML before a Mermaid diagram keeps its title and nothing else."""
    inside, begun = False, False
    for line in text.splitlines():
        if syntax is MERMAID and not begun and _FRONT.match(line):
            inside = not inside
            yield ""
            begun = not inside
        elif inside:
            yield line if line.startswith("title") else ""
        else:
            begun = begun or bool(line.strip())
            yield line


def _without_block_comment(line: str, inside: bool) -> tuple[str, bool]:
    """``/' ... '/``, which may begin and end anywhere."""
    kept = ""
    while line:
        mark = "'/" if inside else "/'"
        before, found, line = line.partition(mark)
        kept += "" if inside else before
        if not found:
            break
        inside = not inside
    return kept.strip(), inside
