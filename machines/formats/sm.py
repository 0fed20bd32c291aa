"""Reads templates of the redis-state-machine module: ``{"initial": "a", "map": {"a": ["b"], "b": []}, ...}``.

A template says which state leads to which, and nothing about events. So each state gets an event of its own:
``to.<state>``.
"""

import re
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, Report, quote
from machines.engine.definitions.place import Place

from . import json
from .text import Names, stem

NAME = "machine"  # a template has none
EVENT = "to."
KEYS = ("initial", "map", "current", "reason")
_SHAPE = 'a template looks like {"initial": "a", "map": {"a": ["b"], "b": []}, "current": "", "reason": ""}'
# A dot would make one event the beginning of another.
_NOT_A_WORD = re.compile(r"[\s*.\x00-\x1f\x7f-\x9f]+")


def read(text: str, base: str | Path | None = None) -> tuple[Any, list[Finding]]:
    value, findings = json.read(text)
    if findings:
        return None, findings
    report = Report()
    report.document = value
    place = Place(value, (), report)
    if not place.is_object("a template", _SHAPE):
        return None, report.findings()
    definition = _definition(place, stem(base))
    return definition, report.findings()


def _definition(place: Place, name: str) -> dict[str, Any]:
    for key in KEYS:
        if key not in place:
            place.report.add("SB106", place.below(key), f'"{key}" is missing', _SHAPE)
    place.refuse_unknown(KEYS)
    states = _states(place.part("map"))
    first = place.part("initial").text("the name of a state")
    _say_what_is_no_definition(place, first)
    if not name:
        hint = 'write its name as "id", or read it with one: machine import --id NAME'
        place.report.add("SB223", ("id",), f"a template has no name; the machine is called {quote(NAME)}", hint)
    return {"id": name or NAME, "initial": _target(first or ""), "states": states}


def _states(place: Place) -> dict[str, Any]:
    if not place.is_object("an object of states and the states they lead to"):
        return {}
    if len(place.value) > limits.MAX_STATES:
        place.error("SB111", f"{len(place.value)} states; at most {limits.MAX_STATES} are allowed")
        return {}
    events = _events(list(place.value))
    return {name: _state(name, below, events) for name, below in place.items()}


def _state(name: str, place: Place, events: dict[str, str]) -> dict[str, Any]:
    on: dict[str, Any] = {}
    for one in place.one_or_many() if place.is_array("a list of states") else ():
        target = one.text("the name of a state")
        if target is None:
            continue
        if target not in events:
            message = f"{quote(target)} is no key of the map, so the module never goes there"
            place.report.add("SB221", one.path, message, "add it to the map, with the states it leads to")
            continue
        found = _target(target)
        on[events[target]] = {"target": found, "reenter": True} if target == name else found
    return {"on": on} if on else {}


def _target(name: str) -> str:
    """Write a state's name as a target, with # if it would be read as a path."""
    return f"#{name}" if name.startswith(("#", ".")) else name


def _events(names: list[str]) -> dict[str, str]:
    """Return an event for each state. Names that become the same word get a number."""
    events, room = Names(), limits.MAX_EVENT_NAME - len(EVENT) - 4
    return {name: events.take(EVENT + (_NOT_A_WORD.sub("_", name)[:room] or "_")) for name in names}


def _say_what_is_no_definition(place: Place, initial: str | None) -> None:
    """Report the current state and its reason, which belong to an instance and not to a definition."""
    current, reason = place.value.get("current"), place.value.get("reason")
    for key, value in (("current", current), ("reason", reason)):
        if key in place and not isinstance(value, str):
            place.at(key).text()
    if isinstance(current, str) and current not in ("", initial):
        message = f"{quote(current)} is where one machine stands; every instance begins at {quote(initial or '')}"
        place.report.add("SB221", ("current",), message, "force an instance there once it was created")
    if isinstance(reason, str) and reason:
        place.report.add("SB221", ("reason",), "the reason belongs to one machine, not to all of them")
