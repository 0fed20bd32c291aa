"""The kinds of value that an expression may have, as far as the text shows: so that ``x + 1`` can stay ``x + 1``."""

from __future__ import annotations

from typing import Any

Kinds = frozenset[str]

NONE = frozenset(["none"])  # undefined and null: machines have only one of them
BOOLEAN = frozenset(["boolean"])
NUMBER = frozenset(["number"])
STRING = frozenset(["string"])
ARRAY = frozenset(["array"])
OBJECT = frozenset(["object"])
TABLES = ARRAY | OBJECT
ANY = NONE | BOOLEAN | NUMBER | STRING | TABLES
NOTHING: Kinds = frozenset()  # of an expression that never has a value


def kinds_of(value: Any) -> Kinds:
    """Return the kinds of a JSON value."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    return STRING if isinstance(value, str) else ARRAY if isinstance(value, list) else OBJECT


def only(kinds: Kinds, allowed: Kinds) -> bool:
    """Return whether every present value is of the allowed kinds. An absent value fails in both languages."""
    return kinds - NONE <= allowed


def same_primitive(a: Kinds, b: Kinds) -> bool:
    """Return whether == and === mean the same here: both sides have one kind, or both are objects."""
    left, right = a - NONE, b - NONE
    if left <= TABLES and right <= TABLES:
        return True
    return len(left | right) <= 1
