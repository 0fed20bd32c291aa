"""Walks over all snapshots that a machine can reach, by the interpreter in Redis, and chooses the inputs that it
tries."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import require_ok
from machines.engine.definitions.fields import get_type, is_of_type
from machines.engine.definitions.model import Field, Machine
from machines.engine.limits import is_reserved_event
from machines.engine.simulation import START, encode_program

from .usage import Place, Term, Usage

TOGETHER = 20  # snapshots of one call
ID = "verified"
FACTS = frozenset({"_version", "_def", "_created", "_entered", "_parent"})


@dataclass(slots=True)
class Edge:
    """What an input leads to. ``target``: number of the node, None where nothing changed."""

    input: Any
    event: str
    outcome: str
    transitions: tuple[str, ...]
    error: str = ""
    failing: Mapping[str, str] = field(default_factory=dict)
    target: int | None = None


@dataclass(slots=True)
class Node:
    """One snapshot. ``came``: number of the node before and the input; None for the first ones. ``data``: what was
    given at the creation. ``holds``: for each property true, false or why it fails."""

    number: int
    snapshot: Mapping[str, Any]
    active: frozenset[str]
    done: bool
    holds: Sequence[Any]
    came: tuple[int, Any] | None
    data: Mapping[str, Any]
    edges: list[Edge] = field(default_factory=list)
    expanded: bool = False


@dataclass(slots=True)
class FailedCreation:
    """An instance that could not begin."""

    data: Mapping[str, Any]
    error: str


class Walk:
    """The snapshots of a machine and how they follow each other. ``whole``: all were found, and the values that were
    tried stand for all others; ``doubts`` say why not."""

    def __init__(
        self, caller: Caller, root: str, program: Mapping[str, Any], alphabet: Alphabet, relevant: set[str],
        blurred: set[str], properties: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self._caller, self._root, self._text = caller, root, encode_program(program)
        self._alphabet, self._properties = alphabet, list(properties)
        self._hidden = {row["name"] for row in program.get("data", ())} - relevant
        self._blurred = blurred
        self.nodes: list[Node] = []
        self.failed: list[FailedCreation] = []
        self.first: list[tuple[str, ...]] = []
        self.doubts: list[str] = []
        self.is_complete = self._is_cut = False
        self._numbers: dict[str, int] = {}

    @property
    def is_whole(self) -> bool:
        return self.is_complete and not self.doubts

    def explore(self, budget: int, seconds: float) -> None:
        """Walk breadth first over at most ``budget`` snapshots, for at most ``seconds``."""
        till = time.monotonic() + seconds
        for data in self._alphabet.creations:
            self._create(data)
        waiting = deque(node.number for node in self.nodes)
        while waiting and len(self.nodes) < budget and time.monotonic() < till:
            chosen = [self.nodes[waiting.popleft()] for _ in range(min(TOGETHER, len(waiting)))]
            first = 1
            while chosen and time.monotonic() < till:
                following, rows = self._expand(chosen, first)
                for node, row in zip(chosen, rows, strict=False):
                    waiting.extend(self._note(node, row))
                done = len(rows) - 1 if following else len(rows)
                chosen, first = chosen[done:], following or 1
            self._is_cut = self._is_cut or bool(chosen)
        self.is_complete = not waiting and not self._is_cut
        if not self.is_complete:
            self.doubts.append(f"only {len(self.nodes)} snapshots were tried within the budget")

    def _call(self, script: Mapping[str, Any]) -> list[Any]:
        text = json.dumps({"id": ID, "now": START, **script}, ensure_ascii=False, separators=(",", ":"))
        reply = require_ok("sb_simulate", self._caller.compute("sb_simulate", self._root, self._text, text))
        return [json.loads(part) for part in reply[1:]]

    def _create(self, data: Mapping[str, Any]) -> None:
        head, record = self._call({"data": data, "inputs": []})
        if "snapshot" not in head:
            self.failed.append(FailedCreation(data, str(record.get("error", ""))))
            return
        self.first.append(tuple(record["transitions"]))
        (row,) = self._call({"expand": [head["snapshot"]], "properties": self._properties})[1:]
        self._add(row["is"], None, data)

    def _expand(self, nodes: Sequence[Node], first: int) -> tuple[int, list[Any]]:
        """Expand nodes, the first one from that input on; return the input with which the last one goes on, 0 where it
        is over, and the rows."""
        head, *rows = self._call(
            {
                "expand": [node.snapshot for node in nodes],
                "first": first,
                "alphabet": self._alphabet.events,
                "results": self._alphabet.results,
                "properties": self._properties,
            }
        )
        return int(head.get("following") or 0), rows

    def _note(self, node: Node, row: Mapping[str, Any]) -> list[int]:
        fresh = []
        node.expanded = True
        for found in row["edges"]:
            given = found["input"]
            given = self._alphabet.events[int(given) - 1] if isinstance(given, int | float) else given
            edge = Edge(
                given, str(found.get("event", "")), str(found.get("outcome", "")), tuple(found["transitions"]),
                str(found.get("error") or ""), found.get("failing") or {},
            )  # fmt: skip
            if "to" in found:
                known = len(self.nodes)
                edge.target = self._add(found["to"], (node.number, given), node.data)
                if edge.target == known:
                    fresh.append(known)
            node.edges.append(edge)
        return fresh

    def _add(self, row: Mapping[str, Any], came: tuple[int, Any] | None, data: Mapping[str, Any]) -> int:
        snapshot = row["snapshot"]
        key = self._make_key(snapshot, data)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.nodes)
            holds = row.get("holds") or []
            self.nodes.append(Node(number, snapshot, frozenset(row["active"]), bool(row["done"]), holds, came, data))
        return number

    def _make_key(self, snapshot: Mapping[str, Any], data: Mapping[str, Any]) -> str:
        raw = {name: value for name, value in snapshot["raw"].items() if name not in FACTS and name not in self._hidden}
        raw |= dict.fromkeys(self._blurred & raw.keys(), True)
        now = snapshot["now"]
        if "_timers" in raw:
            raw["_timers"] = self._normalize_timers(json.loads(raw["_timers"]), now)
        if "_children" in raw:
            raw["_children"] = sorted(json.loads(raw["_children"]))
        jobs = sorted(job["invoke"] for job in snapshot.get("jobs") or ())
        return json.dumps([raw, jobs], sort_keys=True)

    def _normalize_timers(self, timers: list[Any], now: int) -> list[Any]:
        found = sorted(timers, key=lambda timer: (timer[1], timer[0]))
        if len({str(timer[0]).partition(".")[0] for timer in found}) > 1:
            doubt = "timers that began at different times run side by side"
            if doubt not in self.doubts:
                self.doubts.append(doubt)
        return [[timer[1] - now, *timer[2:]] for timer in found]

    def list_run(self, number: int) -> list[Any]:
        """List the inputs that lead to a node."""
        found: list[Any] = []
        came = self.nodes[number].came
        while came is not None:
            number, given = came
            found.append(given)
            came = self.nodes[number].came
        return [simplify(one) for one in reversed(found)]


def simplify(given: Any) -> Any:
    """Write an input in its shortest form."""
    if isinstance(given, Mapping) and "event" in given and set(given) <= {"event", "payload"}:
        return (given["event"], dict(given["payload"])) if given.get("payload") else given["event"]
    return dict(given) if isinstance(given, Mapping) else given


MOST_PAYLOADS = 48
MOST_CREATIONS = 12
OTHER = "other text"
FIELD = "$field"  # {FIELD: name} stands for what the data field has at that moment
ABSENT = object()
BY_TYPE: Mapping[str, Any] = {
    "integer": 1, "number": 1, "string": "text", "boolean": True, "array": [], "object": {}, "null": None,
    "any": "text",
}  # fmt: skip


class Alphabet:
    """The inputs of one machine. ``doubts``: why they may not stand for all."""

    def __init__(self, machine: Machine, usage: Usage, known: Sequence[str]) -> None:
        self._machine, self._usage = machine, usage
        self.doubts: list[str] = []
        self.events: list[dict[str, Any]] = [
            {"event": name, "payload": payload}
            for name in [*known, *_invent_events(machine, known)]
            for payload in self._list_payloads(name)
        ]
        self.results = self._list_results()
        self.creations = self._list_creations()

    def _list_payloads(self, event: str) -> list[dict[str, Any]]:
        declared = self._machine.events.get(event)
        fields = declared.fields if declared and declared.fields is not None else None
        choices: dict[Term, list[Any]] = {}
        for place in self._usage.list_payload_places(event):
            field = fields.get(place[1]) if fields is not None else None
            if fields is None or field is not None:
                choices[place[1:]] = self._choose(place, field, declared=fields is not None)
        for name, field in (fields or {}).items():
            if (name,) not in choices and not any(term[0] == name for term in choices):
                choices[(name,)] = [_choose_by_type(field.types)]
        return self._combine(choices, MOST_PAYLOADS)

    def _list_results(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for state in self._machine.states.values():
            for invoke in state.invokes:
                places = self._usage.list_payload_places(f"done.invoke.{invoke.id}")
                depth = 1 if invoke.is_machine else 2
                choices = {place[depth:]: self._choose(place, None) for place in places if len(place) > depth}
                whole = next((place for place in places if len(place) == depth and depth == 2), None)
                if whole is not None and not choices:
                    found[invoke.id] = [None if value is ABSENT else value for value in self._choose(whole, None)]
                else:
                    found[invoke.id] = self._combine(choices, MOST_PAYLOADS) if choices else [None]
        return found

    def _list_creations(self) -> list[dict[str, Any]]:
        choices: dict[Term, list[Any]] = {}
        for name in self._usage.inputs:
            field, place = self._machine.fields[name], ("data", name)
            decides = name in self._usage.relevant
            values = self._choose(place, field, declared=True) if decides else [_choose_by_type(field.types)]
            choices[(name,)] = [value for value in values if value is not ABSENT] or [_choose_by_type(field.types)]
        return self._combine(choices, MOST_CREATIONS)

    def _choose(self, place: Place, field: Field | None, *, declared: bool = False) -> list[Any]:
        """List values of a field, the most ordinary one first."""
        types = field.types if field is not None else ("any",)
        constants = self._usage.list_constants(place)
        found: list[Any] = []
        if numbers := sorted({value for value in constants if is_number(value)}):
            found += _list_between(numbers, whole="integer" in types)
        if texts := [value for value in constants if isinstance(value, str)]:
            found += [*texts, OTHER]
        if any(isinstance(value, bool) for value in constants):
            found += [True, False]
        if place in self._usage.truths:
            found += [True, False] if types in (("any",), ("boolean",)) else [_choose_by_type(types), _empty(types)]
        if place[0] != "data":
            found += [{FIELD: name} for name in self._usage.list_copies(place) if name in self._usage.blurred]
        if not found or all(map(_is_field, found)):
            found.append(self._guess(place, types))
        if len(types) > 1:
            found += [BY_TYPE[kind] for kind in types if kind != "null"]
        if None in constants or (declared and field is not None and not field.required and place[0] != "data"):
            found.append(ABSENT)
        fits = [value for value in found if value is ABSENT or _is_field(value) or is_of_type(get_type(value), types)]
        return list_distinct(fits or [_choose_by_type(types)])

    def _guess(self, place: Place, types: Sequence[str]) -> Any:
        if tuple(types) != ("any",):
            return _choose_by_type(types)
        for name in self._usage.list_copies(place):
            return _choose_by_type(self._machine.fields[name].types)
        return 1 if place in self._usage.numeric else "text"

    def _combine(self, choices: Mapping[Term, Sequence[Any]], most: int) -> list[dict[str, Any]]:
        terms = list(choices)
        count = 1
        for term in terms:
            count *= len(choices[term])
        if count <= most:
            return [_build(terms, values) for values in product(*choices.values())]
        self.doubts.append("there are too many combinations of values to try them all")
        first = [choices[term][0] for term in terms]
        varied: Iterator[list[Any]] = (
            [*first[:at], value, *first[at + 1 :]] for at, term in enumerate(terms) for value in choices[term][1:]
        )
        together = (list(values) for values in product(*choices.values()))
        rows = [first, *varied, *islice(together, most)]
        return [_build(terms, values) for values in rows[: 2 * most]]


def _invent_events(machine: Machine, known: Sequence[str]) -> list[str]:
    """Name an event for each pattern that no known one matches."""
    found = []
    for state in machine.states.values():
        for transition in state.all_transitions:
            for one in transition.events:
                if one == "*" or one.endswith(".*"):
                    name = "any" if one == "*" else one.removesuffix("*") + "any"
                    if not is_reserved_event(name) and name not in known and name not in found:
                        found.append(name)
    return found


def _is_field(value: Any) -> bool:
    return isinstance(value, dict) and FIELD in value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_between(numbers: Sequence[Any], *, whole: bool) -> list[Any]:
    """List one number in each region that constants make, and the constants."""
    found = [numbers[-1] + 1]
    for at, number in enumerate(numbers):
        found.append(number)
        after = numbers[at + 1] if at + 1 < len(numbers) else None
        if after is not None and (not whole or after - number > 1):
            found.append(number + 1 if whole else (number + after) / 2)
    found.append(numbers[0] - 1)
    return found


def _choose_by_type(types: Sequence[str]) -> Any:
    return BY_TYPE[next((kind for kind in types if kind != "null"), types[0])]


def _empty(types: Sequence[str]) -> Any:
    return {"integer": 0, "number": 0, "string": "", "array": [], "object": {}}.get(types[0], False)


def list_distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(value is other or (type(value) is type(other) and value == other) for other in found):
            found.append(value)
    return found


def _build(terms: Sequence[Term], values: Sequence[Any]) -> dict[str, Any]:
    """Build an object that has each value at its term."""
    made: dict[str, Any] = {}
    for term, value in sorted(zip(terms, values, strict=True), key=lambda pair: len(pair[0])):
        if value is ABSENT or not term:
            continue
        inner: Any = made
        for key in term[:-1]:
            following = inner.get(key)
            if not isinstance(following, dict):
                following = inner[key] = {}
            inner = following
        inner[term[-1]] = value
    return made
