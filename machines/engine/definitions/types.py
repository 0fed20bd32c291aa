"""The types a field can be declared with: JSON Schema's names, and ``any``."""

from __future__ import annotations

from typing import Any

from ..limits import MAX_INTEGER

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
SCALARS = ("string", "integer", "number", "boolean")
ANY = ("any",)


def type_of(value: Any) -> str:
    """The type of a JSON value. 3.0 is an integer, as JSON Schema has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float) and abs(value) <= MAX_INTEGER and value == int(value):
        return "integer"
    return {int: "number", float: "number", str: "string", list: "array"}.get(type(value), "object")


def fits(type_name: str, types: tuple[str, ...]) -> bool:
    """Whether a value of the type may stand in a field of the types."""
    if "any" in types or type_name in types:
        return True
    return type_name == "integer" and "number" in types


def types_of_example(value: Any) -> tuple[str, ...]:
    """What a field may hold whose example this is: null says nothing, so anything goes."""
    if value is None:
        return ANY
    if isinstance(value, float):
        return ("number",)
    return (type_of(value),)


def in_words(types: tuple[str, ...]) -> str:
    return " or ".join(types)
