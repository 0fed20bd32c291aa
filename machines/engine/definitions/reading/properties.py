"""Reads ``properties``: what a team states about its machine, for the verification."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from machines.engine import expressions
from machines.engine.definitions.model import Field, Property
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote
from machines.engine.definitions.values import report_problems
from machines.engine.expressions import Node

KINDS = ("never", "always", "leads")
MAX_PROPERTIES = 100
_FORM = 'write {"never": "expression"}, {"always": "expression"} or {"leads": ["expression", "expression"]}'


def read_properties(place: Place | None, fields: dict[str, Field], states: Collection[str]) -> tuple[Property, ...]:
    """Read the properties of a machine. The name of a state stands for being in it."""
    if place is None or not place.is_array("a list of properties"):
        return ()
    if len(place.value) > MAX_PROPERTIES:
        place.error("SB111", f"{len(place.value)} properties; at most {MAX_PROPERTIES} are allowed")
        return ()
    return tuple(found for one in place.one_or_many() if (found := _read(one, fields, states)) is not None)


def _read(place: Place, fields: dict[str, Field], states: Collection[str]) -> Property | None:
    if not place.is_object("a property", _FORM):
        return None
    place.refuse_unknown((*KINDS, "description"))
    kinds = [kind for kind in KINDS if kind in place]
    if len(kinds) != 1:
        place.error("SB106", f"a property has one of {', '.join(KINDS)}", _FORM)
        return None
    inner = place.get(kinds[0])
    if inner is None or inner.broken:
        return None
    if kinds[0] == "leads":
        if not inner.is_array("a list of two expressions"):
            return None
        parts = list(inner.one_or_many())
        if len(parts) != 2:
            inner.error("SB104", f"two expressions are needed, not {len(parts)}", _FORM)
            return None
    else:
        parts = [inner]
    read = [_read_condition(part, fields, states) for part in parts]
    if any(one is None for one in read):
        return None
    return Property(kinds[0], tuple(str(part.value) for part in parts), tuple(one for one in read if one), place.path)


def _read_condition(place: Place, fields: dict[str, Field], states: Collection[str]) -> Node | None:
    text = place.text("an expression in quotes", "such as \"In('Paid')\", or the name of a state")
    if text is None:
        return None
    if text in states:
        return ["in", text]
    expression = expressions.read(text)
    report_problems(expression, place.path, place.report)
    if expression.problems:
        return None
    wrong = False
    for use in expression.uses:
        known: Collection[str] = {"data": fields, "state": states}.get(use.kind, ())
        if use.kind in ("data", "state") and use.name not in known:
            code, what = ("SB102", "data field") if use.kind == "data" else ("SB101", "state")
            place.report.add_unknown(code, place.path, what, use.name, known)
            wrong = True
    if outside := sorted(_list_outside(expression.tree)):
        place.error("SB109", f"a property is about data and states; {quote(outside[0])} changes with each event")
        wrong = True
    return None if wrong else expression.tree


def _list_outside(tree: Any) -> Iterator[str]:
    return (name for name in ("event", "trigger", "instance", "now") if name in expressions.references(tree))
