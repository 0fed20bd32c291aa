"""Parses the lines of a diagram into statements, and labels as UML writes them: ``event [guard] / action``."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from machines.engine.definitions.findings import quote
from machines.formats.text import Report

MARK = "[*]"
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
MAX_LINE = 4000  # characters: a longer line is refused
_COMMENT = re.compile(r"%%")
_DESCRIPTION = re.compile(r"accDescr\s*\{", re.IGNORECASE)  # for screen readers, over several lines
_LOOKS = re.compile(r"(?:direction|classDef|class|style|linkStyle|accTitle|accDescr|scale|hide|click)\b", re.IGNORECASE)
_TITLE = re.compile(r"title\s*:\s*(?P<title>.+)", re.IGNORECASE)
_FRONT = re.compile(r"---\s*$")
_FENCE = re.compile(r"```+\s*\w*\s*$")
_BREAK = re.compile(r"<br\s*/?>|\\[nlr]", re.IGNORECASE)
_POINT = re.compile(r"#(\d{1,7});")
_NAMED = re.compile(r"#([a-zA-Z]{2,8});")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_ACTION = re.compile(r"(?:^|(?<=[\s\])]))/(?!/)|/(?=\s)|/(?=[A-Za-z_][\w.]*\s*\()")
_AFTER = re.compile(
    r"after\s*\(?\s*(?P<count>\d{1,9}(?:\.\d{1,3})?)\s*"
    r"(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)?\s*\)?",
    re.IGNORECASE,
)
_ELSE = re.compile(r"\[?\s*(?:else|otherwise|default)\s*\]?", re.IGNORECASE)
_IF = re.compile(r"(?:if|when)\s+", re.IGNORECASE)
_STATE_LINE = re.compile(
    r"(?P<word>entry|exit|do|enter|on entry|on exit|internal)\s*(?:[/:|])\s*(?P<rest>.+)", re.IGNORECASE
)
_INTERNAL = re.compile(r"[^\s\[\]/]+\s*(?:\[[^\]]*\]\s*)?/.*|after\s[^/]+/.*", re.IGNORECASE)


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


def read_lines(text: str, report: Report) -> Source:
    lines: list[Line] = []
    title, describing = "", False
    for line in _list_filled_lines(text, report):
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


def _list_filled_lines(text: str, report: Report) -> Iterator[Line]:
    """Yield the lines that are not empty."""
    for number, raw in enumerate(_skip_front_matter(text), start=1):
        if len(raw) > MAX_LINE:
            report.add("SB111", f"line {number}, column 1", f"a line of more than {MAX_LINE} characters")
            continue
        line = " ".join(raw.split())
        if line and not _COMMENT.match(line) and not _FENCE.match(line):
            yield Line(number, line)


def _skip_front_matter(text: str) -> Iterator[str]:
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


@dataclass(frozen=True, slots=True)
class Label:
    """``delay`` is a duration. ``guard`` is empty for ``else``, too."""

    events: tuple[str, ...] = ()
    guard: str = ""
    actions: tuple[str, ...] = ()
    delay: str = ""


def lines_of(label: str) -> list[str]:
    """Return a label's lines, without markup and with its character codes decoded."""
    found = [_strip_markup(line) for line in _BREAK.split(label)]
    return [line for line in found if line]


def _strip_markup(text: str) -> str:
    plain = _TAG.sub("", text) if "<" in text else text
    plain = _NAMED.sub(lambda match: html.unescape(f"&{match[1]};"), plain)
    plain = _POINT.sub(lambda match: _character(int(match[1])), plain)
    return " ".join(plain.split())


def _character(point: int) -> str:
    return chr(point) if 31 < point < 0x110000 and not 0xD800 <= point < 0xE000 else " "


def read_label(text: str, *, choosing: bool = False) -> Label:
    """Parse the label of an arrow.

    ``choosing``: the arrow leaves a choice, where a text without brackets is a condition.
    """
    lines = lines_of(text)
    whole = " ".join(lines)
    split = _ACTION.search(whole)
    bracket = whole.find("[")
    if split and 0 <= bracket < split.start():
        closing = whole.rfind("]")
        split = _ACTION.search(whole, closing + 1) if closing > bracket else split
    head = (whole[: split.start()] if split else whole).strip()
    actions = _actions(whole[split.end() :]) if split else ()
    event, guard = _take_apart(head)
    if choosing and not guard and event:
        event, guard = "", "" if _ELSE.fullmatch(event) else _IF.sub("", event)
    if _ELSE.fullmatch(guard):
        guard = ""
    found = _AFTER.fullmatch(event)
    if found:
        return Label((), guard, actions, duration(found["count"], found["unit"] or "s"))
    return Label(_events(event), guard, actions)


def duration(count: str, unit: str) -> str:
    unit = unit.lower()
    return count + ("ms" if unit.startswith(("ms", "milli")) else unit[0])


def _take_apart(head: str) -> tuple[str, str]:
    start = head.find("[")
    if start < 0:
        return head, ""
    end = head.rfind("]")
    guard = head[start + 1 : end if end > start else len(head)]
    after = head[end + 1 :] if end > start else ""
    return f"{head[:start].strip()} {after.strip()}".strip(), guard.strip()


def _events(text: str) -> tuple[str, ...]:
    """Split events at commas between single words, as in ``stop, reset``."""
    parts = [part.strip() for part in text.split(",")]
    if all(part and " " not in part for part in parts):
        return tuple(parts)
    return (text,) if text else ()


def _actions(text: str) -> tuple[str, ...]:
    """Split actions at semicolons and at slashes after a space. Each action on its own line is written that way."""
    return tuple(part.strip() for part in re.split(r";| / ", text.replace(" /", " / ")) if part.strip(" /"))


@dataclass(frozen=True, slots=True)
class StateLine:
    """A line of a state: ``word`` is entry, exit, do or event; empty where the line describes it."""

    word: str
    text: str


def read_state_line(line: str) -> StateLine:
    found = _STATE_LINE.fullmatch(line)
    if found:
        word = found["word"].lower().removeprefix("on ")
        return StateLine({"enter": "entry", "internal": "event"}.get(word, word), found["rest"])
    return StateLine("event" if _INTERNAL.fullmatch(line) else "", line)
