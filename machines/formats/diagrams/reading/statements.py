"""Parses the lines of a diagram into statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from machines.engine.definitions.report import quote
from machines.formats.report import Report

from .lines import Line, Source

MARK = "[*]"


@dataclass(frozen=True, slots=True)
class State:
    """A declaration: ``label`` is the text in quotes, ``text`` the text after a colon."""

    line: Line
    id: str
    label: str = ""
    text: str = ""
    kind: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    line: Line
    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A line about a state: what it does, or what it is."""

    line: Line
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """``id``: the state that the note is about; empty for a note on the whole diagram."""

    line: Line
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Close:
    line: Line


@dataclass(frozen=True, slots=True)
class Region:
    """The line between two regions."""

    line: Line


Statement = State | Arrow | Text | Note | Close | Region

_REF = r'\[\*\]|"[^"]*"|[^\s:"{}\[\]<>-](?:[^\s:"{}\[\]<>-]|-(?![->]))*'
_CLASSES = r"(?:\s*:::[\w-]+)*"
_ARROW = re.compile(rf"(?P<source>{_REF}){_CLASSES}\s*-+>\s*(?P<target>{_REF}){_CLASSES}\s*(?::(?!:)(?P<label>.*))?$")
_STATE = re.compile(
    r'state\s+(?:"(?P<quoted>[^"]*)"(?:\s+as\s+(?P<alias>[^\s:"{}<#]+))?|(?P<id>[^:"{}<#]+?))'
    r"\s*(?:(?:<<|\[\[)\s*(?P<kind>choice|fork|join)\s*(?:>>|\]\]))?(?:\s*:::[\w-]+)*\s*(?P<opens>\{)?\s*(?P<closes>\})?"
    r"\s*(?::(?!:)(?P<text>.*))?$",
    re.IGNORECASE,
)
_TEXT = re.compile(r'(?P<id>"[^"]*"|[^\s:"{}\[\]]+)\s*:(?!:)\s*(?P<text>.*)$')
_ALONE = re.compile(r'[^\s:"{}\[\]<>]+(?::::[\w-]+)?$')
_NOTE = re.compile(
    r"note\b\s*(?:(?:left|right)\b\s*(?:of\b\s*(?P<id>\"[^\"]*\"|[^\s:#]+))?"
    r'|"(?P<quoted>[^"]*)"\s*(?:as\s+\S+)?)?\s*(?::(?P<text>.*))?$',
    re.IGNORECASE,
)
_END_NOTE = re.compile(r"end\s?note\b", re.IGNORECASE)
_OTHER_DIAGRAM = re.compile(
    r"(flowchart|graph|sequenceDiagram|classDiagram|erDiagram|gantt|pie|journey|mindmap|gitGraph|timeline)\b"
)
_HEAD = re.compile(r"stateDiagram(?:-v2)?\s*;?$")


def parse(source: Source, report: Report) -> Iterator[Statement]:
    """Yield the statements of a state diagram. A line that is not part of one is reported as an error at its place."""
    lines = iter(source.lines)
    for line in lines:
        if _HEAD.match(line.text):
            continue
        if _NOTE.match(line.text) and not _ARROW.match(line.text):
            yield _note(line, lines, report)
            continue
        found = _statement(line)
        if found is None:
            _refuse(line, report)
        else:
            yield from found


def _statement(line: Line) -> list[Statement] | None:
    """Parse one line. Return None if it is not a line of a diagram."""
    text = line.text
    if text == "}":
        return [Close(line)]
    if re.fullmatch(r"--+", text):
        return [Region(line)]
    if found := _ARROW.match(text):
        source, target = found["source"].strip('"'), found["target"].strip('"')
        return [Arrow(line, source, target, (found["label"] or "").strip())]
    if found := _STATE.match(text):
        return _state(line, found)
    if found := _TEXT.match(text):
        return [Text(line, found["id"].strip('"'), found["text"].strip())]
    if _ALONE.match(text):
        return [State(line, text.split(":::")[0])]
    return None


def _state(line: Line, found: re.Match[str]) -> list[Statement]:
    label = found["quoted"] or ""
    id = (found["alias"] or found["id"] or label).strip()
    text, kind = (found["text"] or "").strip(), (found["kind"] or "").lower()
    state = State(line, id.split(":::")[0], label, text, kind, bool(found["opens"]))
    return [state, Close(line)] if found["opens"] and found["closes"] else [state]


def _note(line: Line, lines: Iterator[Line], report: Report) -> Note:
    found = _NOTE.match(line.text)
    assert found is not None
    text = found["text"] or found["quoted"]
    if text is None:
        kept = []
        for further in lines:
            if _END_NOTE.match(further.text):
                break
            kept.append(further.text)
        else:
            report.add("SB131", line.place, "the note has no end", "write: end note")
        text = "\n".join(kept)
    return Note(line, (found["id"] or "").strip('"'), text.strip())


def _refuse(line: Line, report: Report) -> None:
    other = _OTHER_DIAGRAM.match(line.text)
    if other:
        report.add("SB131", line.place, f"this is a {other[1]}, not a state diagram", "it begins with: stateDiagram-v2")
    else:
        message = f"not a line of a Mermaid state diagram: {quote(line.text)}"
        report.add("SB131", line.place, message, "A --> B : event")
