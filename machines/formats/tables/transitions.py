"""Markup of the library ``transitions``: the keyword arguments of its machines as JSON or YAML.

``{"states": ["a", {"name": "b", "children": [...]}], "transitions": [{"trigger": "go", "source": "a", "dest": "b"}]}``
"""

from __future__ import annotations

import re
from pathlib import Path as FilePath
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import Report, quote
from machines.formats import json, yaml
from machines.formats.messages import machine_name
from machines.formats.text import stem

from .definition import Builder
from .table import Move, Row, Table

NAMELESS = "machine"
MAX_MOVES = 20_000  # written out: "*" stands for each state
_SHAPE = (
    'markup looks like {"states": ["a", "b"], "initial": "a", '
    '"transitions": [{"trigger": "go", "source": "a", "dest": "b"}]}'
)
_SEPARATORS = re.compile(r"[_./↦]|->")
_ORDER = ("trigger", "source", "dest", "conditions", "unless", "before", "after", "prepare")
_MACHINE = (
    "states",
    "transitions",
    "initial",
    "name",
    "before_state_change",
    "after_state_change",
    "ordered_transitions",
)
_SAID = {
    "prepare_event": "callbacks before conditions are not called",
    "finalize_event": "callbacks after each event are not called",
    "on_exception": "a failing action refuses the step",
    "on_final": "a machine that is done is done",
    "auto_transitions": "there are no to_<state> events; an operator can force a state",
    "ignore_invalid_triggers": "an event that no transition takes is refused",
}
_IDLE = ("queued", "send_event", "models", "model", "model_attribute", "model_override", "title", "show_conditions")
_IDLE += ("use_pygraphviz", "graph_engine", "show_auto_transitions", "show_state_attributes", "with_model_definitions")
_STATE = (
    "name",
    "children",
    "states",
    "parallel",
    "initial",
    "transitions",
    "on_enter",
    "on_exit",
    "on_final",
    "final",
)
_STATE += ("tags", "timeout", "on_timeout", "label", "value", "accepted", "ignore_invalid_triggers")


def read(text: str, base: str | FilePath | None = None) -> tuple[Any, list[Finding]]:
    """The definition, and all findings. Next to an error the definition is a draft to go on with."""
    value, findings = (json if text.lstrip()[:1] in ("{", "[") else yaml).read(text)
    if findings:
        return None, findings
    report = Report()
    report.document = value
    place = Place(value, (), report)
    if not place.is_object("markup", _SHAPE):
        return None, report.findings()
    for key in ("states", "transitions"):
        if key not in place:
            report.add("SB106", place.below(key), f'"{key}" is missing', _SHAPE)
    if report.has_errors:
        return None, report.findings()
    table = _Reader(place).read()
    if len(list(table.top.walk())) > limits.MAX_STATES + 1:
        report.add("SB111", ("states",), f"more than {limits.MAX_STATES} states")
        return None, report.findings()
    name = machine_name(table.name) or stem(base)
    if not name:
        report.add("SB223", ("name",), "the markup has no name", f"it is {NAMELESS!r} until you name it")
    return Builder(table, report).build(name or NAMELESS), report.findings()


class _Reader:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._report = place.report
        self._top = Row("", ())
        self._moves: list[Move] = []
        self._before = _names(place.get("before_state_change"))
        self._after = _names(place.get("after_state_change"))

    def read(self) -> Table:
        self._say(self._place)
        self._children(self._top, self._place.at("states"))
        self._add_initial()
        self._top.initial = self._initial(self._top, self._place)
        if self._top.initial is None and self._top.children and not self._top.is_parallel:
            self._top.initial = self._top.children[0]
            message = f"no initial state is named; it is {quote(self._top.initial.key)}"
            self._report.add("SB224", ("initial",), message)
        self._transitions(self._top, self._place.at("transitions"))
        if self._place.value.get("ordered_transitions") is True:
            self._ordered()
        name = self._place.value.get("name")
        return Table(name.strip(" :") if isinstance(name, str) else "", self._top, self._moves)

    def _add_initial(self) -> None:
        """An initial state that is not in the list is added, as the library does."""
        name = self._place.value.get("initial")
        if isinstance(name, str) and name and self._find(self._top, name) is None:
            self._top.children.insert(0, Row(name, ("initial",), self._top))
            message = f"the initial state {quote(name)} is not in the list of states; it is added"
            self._report.add("SB224", ("initial",), message)

    def _say(self, place: Place) -> None:
        for key, value in place.value.items():
            if key in _SAID:
                if value not in (None, False, [], ""):
                    self._report.add("SB221", place.below(key), _SAID[key])
            elif key not in (*_MACHINE, *_IDLE):
                self._report.add("SB221", place.below(key), f"the key {quote(key)} has no meaning here")

    # -- states ------------------------------------------------------------------------------------

    def _children(self, around: Row, place: Place) -> None:
        for one in place.one_or_many():
            self._state(around, one)

    def _state(self, around: Row, place: Place) -> None:
        if isinstance(place.value, str | int) and not isinstance(place.value, bool):
            around.children.append(Row(str(place.value), place.path, around))
            return
        if not place.is_object("a state", 'write its name, or {"name": "a"}'):
            return
        name = place.get("name")
        key = name.text("the name of a state") if name else None
        if key is None:
            self._report.add("SB106", place.below("name"), '"name" is missing', 'write {"name": "a"}')
            return
        row = Row(key, place.path, around)
        around.children.append(row)
        for key in place.value:
            if key == "remap":
                self._report.add("SB141", place.below(key), "machines inside states cannot be remapped here")
            elif key not in _STATE:
                self._report.add("SB221", place.below(key), f"the key {quote(key)} has no meaning here")
        self._facts(row, place)
        self._inside(row, place)

    def _facts(self, row: Row, place: Place) -> None:
        row.entry, row.exit = _names(place.get("on_enter")), _names(place.get("on_exit"))
        row.done, row.tags = _names(place.get("on_final")), _names(place.get("tags"))
        row.is_final = place.value.get("final") is True
        label = place.value.get("label")
        row.description = label if isinstance(label, str) and label != row.key else ""
        seconds = place.value.get("timeout")
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
            row.timeout = (f"{round(seconds * 1000)}ms", _names(place.get("on_timeout")))

    def _inside(self, row: Row, place: Place) -> None:
        """Children as a list of states, as a list of regions, or as markup of their own."""
        for key in ("parallel", "children", "states"):
            if place.value.get(key) in (None, []):
                continue
            inner = place.at(key)
            row.is_parallel = row.is_parallel or key == "parallel"
            machine = inner if isinstance(inner.value, dict) and "states" in inner else None
            self._children(row, machine.at("states") if machine else inner)
            row.initial = self._initial(row, place) or (self._initial(row, machine) if machine else None)
            for home in (place, machine):
                if home is not None and home.value.get("transitions"):
                    self._transitions(row, home.at("transitions"))
        row.rests = bool(row.children) and row.initial is None and not row.is_parallel

    def _initial(self, row: Row, place: Place) -> Row | None:
        """A list of initial states makes them regions."""
        found = place.get("initial")
        if found is None or found.value in (None, "", [], False):
            return None
        if isinstance(found.value, list):
            row.is_parallel = True
            missing = [child for child in row.children if child.key not in found.value]
            if missing and all(isinstance(one, str) for one in found.value):
                message = "not all states are initial at once; those that are not are regions, too"
                self._report.add("SB224", found.path, message)
            return None
        name = found.text("the name of a state")
        row_found = self._find(row, name) if name is not None else None
        if name is not None and row_found is None:
            self._report.unknown("SB101", found.path, "state", name, [child.key for child in row.children])
        return row_found

    def _find(self, row: Row, name: str) -> Row | None:
        """By its key, or by the keys down to it with a separator between them."""
        exact = next((child for child in row.children if child.key == name), None)
        if exact is not None:
            return exact
        for child in row.children:
            rest = name.removeprefix(child.key)
            separator = _SEPARATORS.match(rest) if rest != name else None
            if separator is not None:
                found = self._find(child, rest[separator.end() :])
                if found is not None:
                    return found
        return None

    # -- transitions -------------------------------------------------------------------------------

    def _transitions(self, row: Row, place: Place) -> None:
        if place.value is None or not place.is_array("a list of transitions"):
            return
        for one in place.one_or_many():
            if len(self._moves) > MAX_MOVES:
                self._report.add("SB111", one.path, f"more than {MAX_MOVES} transitions")
                return
            self._transition(row, one)

    def _transition(self, row: Row, place: Place) -> None:
        parts = self._parts(place)
        trigger = parts.get("trigger")
        event = trigger.text("the name of a trigger") if trigger else None
        if event is None or "source" not in parts:
            self._report.add("SB106", place.path, "a transition needs a trigger and a source", _SHAPE)
            return
        conditions = [(name, True) for name in _names(parts.get("conditions"))]
        conditions += [(name, False) for name in _names(parts.get("unless"))]
        if "prepare" in parts and _names(parts["prepare"]):
            self._report.add("SB221", parts["prepare"].path, "callbacks before conditions are not called")
        actions = [*self._before, *_names(parts.get("before")), *_names(parts.get("after")), *self._after]
        for source in self._sources(row, parts["source"]):
            targets, known = self._destination(row, source, parts.get("dest"))
            if known:
                self._moves.append(
                    Move(place.path, event, source, targets, conditions, actions, is_internal=not targets)
                )

    def _parts(self, place: Place) -> dict[str, Place]:
        if isinstance(place.value, list):
            return {key: place.at(index) for index, key in enumerate(_ORDER[: len(place.value)])}
        if not place.is_object("a transition", _SHAPE):
            return {}
        for key in place.value:
            if key not in (*_ORDER, "label"):
                self._report.add("SB221", place.below(key), f"the key {quote(key)} has no meaning here")
        return dict(place.items())

    def _sources(self, row: Row, place: Place) -> list[Row]:
        if place.value == "*":
            return list(row.children)  # a state takes what no state inside it does
        found = []
        for one in place.one_or_many():
            name = one.text("the name of a state")
            source = self._find(row, name) if name is not None else None
            if name is not None and source is None:
                self._report.unknown("SB101", one.path, "state", name, [other.key for other in self._top.walk()])
            if source is not None:
                found.append(source)
        return found

    def _destination(self, row: Row, source: Row, place: Place | None) -> tuple[list[Row], bool]:
        """``=`` is the source itself, nothing is a transition that leaves no state."""
        if place is None or place.value is None:
            return [], True
        if place.value == "=":
            return [source], True
        found = []
        for one in place.one_or_many():
            name = one.text("the name of a state")
            target = None if name is None else self._find(row, name) or self._find(self._top, name)
            if name is not None and target is None:
                self._report.unknown("SB101", one.path, "state", name, [other.key for other in self._top.walk()])
            if target is None:
                return [], False
            found.append(target)
        return found, True

    def _ordered(self) -> None:
        states = self._top.children
        for source, target in zip(states, [*states[1:], *states[:1]], strict=True):
            self._moves.append(Move(("ordered_transitions",), "next_state", source, [target], [], []))


def _names(place: Place | None) -> list[str]:
    """One callback or a list of them; what is no name is reported."""
    if place is None or place.value is None:
        return []
    found = [one.text("the name of a callback or condition") for one in place.one_or_many()]
    return [name for name in found if name]
