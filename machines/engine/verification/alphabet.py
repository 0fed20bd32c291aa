"""The inputs that a walk tries: events with payloads, results of jobs and children, data given at the creation.

Values are chosen by the constants that the machine compares them with: one for each region between them, so that they
stand for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from machines.engine.definitions.model import Field, Machine
from machines.engine.limits import is_reserved_event

from .terms import Term, has_type
from .usage import Place, Usage

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
        self.events = [
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
                choices[(name,)] = [_by_type(field.types)]
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
            values = self._choose(place, field, declared=True) if decides else [_by_type(field.types)]
            choices[(name,)] = [value for value in values if value is not ABSENT] or [_by_type(field.types)]
        return self._combine(choices, MOST_CREATIONS)

    def _choose(self, place: Place, field: Field | None, *, declared: bool = False) -> list[Any]:
        """List values of a field, the most ordinary one first."""
        types = field.types if field is not None else ("any",)
        constants = self._usage.list_constants(place)
        found: list[Any] = []
        if numbers := sorted({value for value in constants if _is_number(value)}):
            found += _between(numbers, whole="integer" in types)
        if texts := [value for value in constants if isinstance(value, str)]:
            found += [*texts, OTHER]
        if any(isinstance(value, bool) for value in constants):
            found += [True, False]
        if place in self._usage.truths:
            found += [True, False] if types in (("any",), ("boolean",)) else [_by_type(types), _empty(types)]
        if place[0] != "data":
            found += [{FIELD: name} for name in self._usage.list_copies(place) if name in self._usage.blurred]
        if not found or all(isinstance(value, dict) and FIELD in value for value in found):
            found.append(self._guess(place, types))
        if len(types) > 1:
            found += [BY_TYPE[kind] for kind in types if kind != "null"]
        if None in constants or (declared and field is not None and not field.required and place[0] != "data"):
            found.append(ABSENT)
        fits = [value for value in found if value is ABSENT or _is_field(value) or has_type(value, types)]
        return _distinct(fits or [_by_type(types)])

    def _guess(self, place: Place, types: Sequence[str]) -> Any:
        if tuple(types) != ("any",):
            return _by_type(types)
        for name in self._usage.list_copies(place):
            return _by_type(self._machine.fields[name].types)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _between(numbers: Sequence[Any], *, whole: bool) -> list[Any]:
    """List one number in each region that constants make, and the constants."""
    found = [numbers[-1] + 1]
    for at, number in enumerate(numbers):
        found.append(number)
        after = numbers[at + 1] if at + 1 < len(numbers) else None
        if after is not None and (not whole or after - number > 1):
            found.append(number + 1 if whole else (number + after) / 2)
    found.append(numbers[0] - 1)
    return found


def _by_type(types: Sequence[str]) -> Any:
    return BY_TYPE[next((kind for kind in types if kind != "null"), types[0])]


def _empty(types: Sequence[str]) -> Any:
    return {"integer": 0, "number": 0, "string": "", "array": [], "object": {}}.get(types[0], False)


def _distinct(values: Iterable[Any]) -> list[Any]:
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
