"""Writes XML. The writers of one document share the machine, valid names for SCXML, and findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from machines.engine.definitions.checks.references import PayloadTypes
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import Machine
from machines.formats.scxml.reading.survey import RESERVED
from machines.formats.text import Names

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ATTRIBUTE = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
_ID = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_OWN = ("Signalbox", "Math", "JSON", "Object", "Array", "Number", "String", "Date", "undefined", "NaN", "Infinity")
_REFUSED = {code: f"\\u{code:04x}" for code in (0xFFFE, 0xFFFF)}


@dataclass(slots=True)
class Tag:
    """An element: with elements inside, or with text. Attributes that are None are left out."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Tag] = field(default_factory=list)
    text: str = ""

    def lines(self, indent: str = "") -> Iterator[str]:
        written = "".join(
            f' {name}="{value.translate(_ATTRIBUTE)}"' for name, value in self.attributes.items() if value is not None
        )
        if self.text:
            yield f"{indent}<{self.name}{written}>{self.text.translate(_TEXT)}</{self.name}>"
        elif not self.children:
            yield f"{indent}<{self.name}{written}/>"
        else:
            yield f"{indent}<{self.name}{written}>"
            for child in self.children:
                yield from child.lines(indent + "  ")
            yield f"{indent}</{self.name}>"


def render(root: Tag) -> str:
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *root.lines()]) + "\n"


@dataclass(slots=True)
class Writing:
    """``document`` is the plain copy of the definition; ``ids`` and ``variables`` map names to those in the text.

    ``events``: the names in the text of timers and of ends of states. ``embedded``: machines written where they are
    invoked.
    """

    machine: Machine
    document: dict[str, Any]
    report: Report
    ids: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)
    embedded: dict[str, Tag] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    payload: PayloadTypes | None = None  # of the event of the transition that is being written
    _reported: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        ids, variables = Names(), Names(self.machine.fields)
        for name in self.machine.states:
            self.ids[name] = ids.take(_as_id(name))
        for name in self.machine.fields:
            fits = RESERVED.fullmatch(name) is None and name not in _OWN
            self.variables[name] = name if fits else variables.take(f"{name}_")
            if not fits:
                message = f"ECMAScript uses {quote(name)} itself: it is called {self.variables[name]} in the text"
                self.report.add("SB223", self.machine.fields[name].path, message)
        self._name_events()

    def _name_events(self) -> None:
        """Choose names for the events of states.

        The names of timers begin with a word that no transition listens for. That word is not ``after``: tools that
        drop what they do not know turn timers into plain sends, and a plain send of that name would not be read.
        """
        events = (event for state in self.machine.states.values() for t in state.transitions for event in t.events)
        timer = Names(event.partition(".")[0] for event in events).take("timer")
        for state in self.machine.states.values():
            id = self.ids[state.name]
            if state.done:
                self.events[state.done] = f"done.state.{id}"
            timed = dict.fromkeys(t.events[0] for t in state.transitions if t.cause == "after" and t.events)
            for number, event in enumerate(timed, start=1):
                self.events[event] = f"{timer}.{id}.{number}"

    def at(self, path: Path) -> Any:
        """Return the JSON at a path."""
        found: Any = self.document
        for part in path:
            found = found[part]
        return found

    def add_once(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Add a finding at its first place, and not again."""
        if message not in self._reported:
            self._reported.add(message)
            self.report.add(code, path, message, hint)

    def ours(self, path: Path, what: str) -> None:
        """Report that something is written in our own namespace."""
        self.add_once(
            "SB222", path, f"SCXML has no {what}: it stands in our own namespace, where only Signalbox reads it"
        )


def more(found: dict[str, Any]) -> list[Tag]:
    """Write properties that SCXML does not have, as JSON in an element of ours."""
    return [Tag("sb:more", text=compact(found))] if found else []


def compact(value: Any) -> str:
    """Write JSON without characters that XML refuses."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f").translate(_REFUSED)


def _as_id(name: str) -> str:
    if _ID.fullmatch(name) and name.isascii():
        return name
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    return word if word[:1].isalpha() else f"s_{word}"
