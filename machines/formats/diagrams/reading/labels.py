"""Reads the labels of arrows and the lines of states: ``event [guard] / action``, as in UML."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Label:
    """``delay`` is a duration. ``guard`` is empty for ``else``, too."""

    events: tuple[str, ...] = ()
    guard: str = ""
    actions: tuple[str, ...] = ()
    delay: str = ""


def lines_of(label: str) -> list[str]:
    """Return a label's lines, without markup and with its character codes decoded."""
    found = [_plain(line) for line in _BREAK.split(label)]
    return [line for line in found if line]


def _plain(text: str) -> str:
    plain = _TAG.sub("", text) if "<" in text else text
    plain = _NAMED.sub(lambda match: html.unescape(f"&{match[1]};"), plain)
    plain = _POINT.sub(lambda match: _character(int(match[1])), plain)
    return " ".join(plain.split())


def _character(point: int) -> str:
    return chr(point) if 31 < point < 0x110000 and not 0xD800 <= point < 0xE000 else " "


def read(text: str, *, choosing: bool = False) -> Label:
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


_STATE_LINE = re.compile(
    r"(?P<word>entry|exit|do|enter|on entry|on exit|internal)\s*(?:[/:|])\s*(?P<rest>.+)", re.IGNORECASE
)
_INTERNAL = re.compile(r"[^\s\[\]/]+\s*(?:\[[^\]]*\]\s*)?/.*|after\s[^/]+/.*", re.IGNORECASE)


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
