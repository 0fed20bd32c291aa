"""Reads values: plain JSON is used as it is, and text between double braces is an expression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from machines.engine import expressions
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import Report, quote
from machines.formats.xstate.context import Scope
from machines.formats.xstate.dialect import unbrace
from machines.formats.xstate.source import scripts


def literal(text: str) -> str:
    """Return the text as an expression whose value it is."""
    return repr(text)


def read_value(place: Place, scope: Scope) -> Any:
    """Read a value as actions, inputs and outputs take it."""
    value = place.value
    if isinstance(value, str):
        code = unbrace(value)
        return literal(value) if code is None else read_expression(place, code, scope)
    if isinstance(value, dict):
        return {key: read_value(item, scope) for key, item in place.items()}
    if isinstance(value, list):
        return [read_value(item, scope) for item in place.one_or_many()]
    return value


def read_object(place: Place, scope: Scope, key: str) -> dict[str, Any]:
    """Read an object. Any other value becomes the value of its only key."""
    code = unbrace(place.value) if isinstance(place.value, str) and not scope.reading.ours else None
    value: Any = scripts.fields_of(code, scope, place) if code is not None else None
    value = value if isinstance(value, dict) else read_value(place, scope)
    if isinstance(value, dict):
        return value
    place.report.add("SB223", place.path, f"the value is no object here; it is now called {quote(key)}")
    return {key: value}


def read_params(place: Place | None, scope: Scope) -> Any:
    """Read the parameters of a named guard or action: expressions by name, one expression, or None."""
    if place is None or place.value is None:
        return None
    if isinstance(place.value, dict):
        silent = replace(place, report=Report())
        return {key: expression_of(read_value(value, scope)) for key, value in silent.items()}
    code = unbrace(place.value) if isinstance(place.value, str) and not scope.reading.ours else None
    if code is None:
        return expression_of(read_value(place, scope))
    fields = scripts.fields_of(code, scope, place)
    if isinstance(fields, dict):
        return fields
    whole = scripts.translate(code, scope, place)
    return whole if isinstance(whole, str) else None


def expression_of(value: Any) -> str:
    """Return a value as one expression. In the value, each text is an expression."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + ", ".join(expression_of(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {expression_of(item)}" for key, item in value.items()) + "}"
    return repr(value)


def read_expression(place: Place, code: str, scope: Scope, *, condition: bool = False) -> str:
    """Read an expression. Ours is unchanged, and a script is translated.

    A script that cannot be translated is an error, and the draft keeps it.
    """
    if scope.reading.ours:
        return code
    found = scripts.translate(code, scope, place, condition=condition)
    if isinstance(found, str):
        return found
    what = f"{scripts.describe(code)} that cannot be translated: {found.why} in {quote(code)}"
    place.report.add("SB140", place.path, what, found.hint or "write it as an expression")
    return code


def is_expression(text: str, scope: Scope) -> bool:
    """Return whether a text is a valid expression of ours. Used where a name could also be meant."""
    found = expressions.read(text, guard=True)
    if found.problems or not text.strip():
        return False
    known = {"data": scope.reading.fields, "state": scope.reading.states.names}
    return all(use.name in known[use.kind] for use in found.uses if use.kind in known)
