"""Finds what expressions compare fields with: forms take it for the type of a field that declares none."""

from __future__ import annotations

from collections.abc import Iterator

from machines.engine.definitions.model import Machine
from machines.engine.definitions.outline import Compared
from machines.engine.expressions import Node, list_parts

from .references import find_spots
from .types import ARGUMENTS, NULL, NUMBERS, Inference, Types

DATA = ""
"""The key of data fields, beside descriptors of events."""


def find_comparisons(machine: Machine) -> dict[str, Compared]:
    """Find what fields of payloads are compared with, by the descriptor of their events, and data fields (DATA)."""
    found: dict[str, dict[str, set[str]]] = {}
    declared = {field.name: field.types for field in machine.fields.values()}
    for spot in find_spots(machine):
        if spot.expression.problems:
            continue
        inference = Inference(declared, spot.payload, lambda code, message: None)
        for (kind, name), types in _walk(spot.expression.tree, inference):
            for place in (DATA,) if kind == "data" else spot.events:
                held = found.setdefault(place, {}).setdefault(name, set())
                held.update("number" if one in NUMBERS else one for one in types)
    return {place: {name: tuple(sorted(types)) for name, types in some.items()} for place, some in found.items()}


def _walk(node: Node, inference: Inference) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Yield each field below a node, as kind and name, with the types that stand beside it."""
    for part, other in _list_pairs(node):
        if (named := _name_field(part)) is None:
            continue
        types: Types = inference.types(other) if isinstance(other, list) else other
        if types and types - NULL:
            yield named, types - NULL
    for part in list_parts(node):
        yield from _walk(part, inference)


def _list_pairs(node: Node) -> Iterator[tuple[Node, Node | Types]]:
    operator, *rest = node
    if operator == "cmp":
        left = rest[0]
        for word, right in rest[1:]:
            if word not in ("in", "not in"):
                yield from ((left, right), (right, left))
            elif right[0] == "list":
                yield from ((left, element) for element in right[1:])
            left = right
    elif operator == "neg":
        yield rest[0], NUMBERS
    elif operator == "bin":
        word, left, right = rest
        yield from ((left, right), (right, left)) if word == "+" else ((left, NUMBERS), (right, NUMBERS))
    elif operator == "call":
        yield from zip(rest[1:], ARGUMENTS.get(rest[0], ()), strict=False)


def _name_field(node: Node) -> tuple[str, str] | None:
    if node[0] == "data":
        return "data", node[1]
    if node[0] == "get" and node[1] == ["event"] and node[2][0] == "str":
        return "payload", node[2][1]
    return None
