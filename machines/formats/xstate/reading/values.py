"""Reads values: plain JSON is used as it is, and text between double braces is an expression. Guards are the same."""

from dataclasses import replace
from typing import Any

from machines.engine.definitions.findings import Report, quote
from machines.engine.definitions.place import Place
from machines.engine.expressions import read as parse_expression
from machines.formats.xstate import expressions
from machines.formats.xstate.context import Scope, unbrace

_PREFIXES = ("xstate.guard:", "xstate.guard.", "xstate.")
_WORDS = {"and": " and ", "or": " or "}


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
    value: Any = expressions.fields_of(code, scope, place) if code is not None else None
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
    fields = expressions.fields_of(code, scope, place)
    if isinstance(fields, dict):
        return fields
    whole = expressions.translate(code, scope, place)
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
    found = expressions.translate(code, scope, place, condition=condition)
    if isinstance(found, str):
        return found
    what = f"{expressions.describe(code)} that cannot be translated: {found.why} in {quote(code)}"
    place.report.add("SB140", place.path, what, found.hint or "write it as an expression")
    return code


def is_expression(text: str, scope: Scope) -> bool:
    """Return whether a text is a valid expression of ours. Used where a name could also be meant."""
    found = parse_expression(text, guard=True)
    if found.problems or not text.strip():
        return False
    known = {"data": scope.reading.fields, "state": scope.reading.states.names}
    return all(use.name in known[use.kind] for use in found.uses if use.kind in known)


def read_guard(place: Place, scope: Scope) -> str | bool:
    """Return the guard as text. A guard that cannot be read is an error, and the draft keeps its name."""
    if isinstance(place.value, bool):
        return place.value
    if isinstance(place.value, str):
        return _text(place, place.value, scope)
    if not place.is_object("a guard", 'write its name, or {"type": "name"}'):
        return False
    return _object(place, scope)


def _text(place: Place, text: str, scope: Scope) -> str:
    code = unbrace(text)
    if code is not None:
        return read_expression(place, code, scope, condition=True)
    return _read_named(place, text, scope)


def _read_named(place: Place, name: str, scope: Scope) -> str:
    """Read a named guard: one with an implementation, an expression, or a name for code that is missing."""
    found = expressions.guard(name, scope, place, read_guard)
    if isinstance(found, str):
        return found
    if not scope.reading.ours and is_expression(name, scope):
        if name in scope.reading.fields:
            message = f"the guard {quote(name)} is read as the data field of that name"
            scope.reading.report.add("SB224", place.path, message, "write another expression if it means more")
        return name
    translated = expressions.translate(name, scope, place, condition=True) if "context." in name else None
    if isinstance(translated, str):
        return translated
    scope.reading.code_missing(place, "the guard", name)
    return name


def _object(place: Place, scope: Scope) -> str | bool:
    kind = place.get("type") or place.get("name")
    name = kind.text("the name of a guard") if kind else None
    if name is None:
        scope.reading.cannot(place, "the guard has no name", 'write {"type": "name"}')
        return False
    parts = _parts(place)
    word = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
    if word in _WORDS and parts:
        return _WORDS[word].join(_bracket(read_guard(part, scope)) for part in parts)
    if word == "not" and parts:
        return f"not {_bracket(read_guard(parts[0], scope))}"
    if word == "stateIn" and (value := _argument(place, "stateValue", "state", "value")) is not None:
        return state_in(value, scope)
    params = place.get("params")
    return _text(place, name, replace(scope, params=read_params(params, scope)) if params else scope)


def _parts(place: Place) -> list[Place]:
    found = _argument(place, "guards", "children", "guard")
    return found.one_or_many() if found else []


def _argument(place: Place, *names: str) -> Place | None:
    for home in (place, place.get("params")):
        for name in names:
            if home is not None and name in home:
                return home.at(name)
    return None


def _bracket(guard: str | bool) -> str:
    return f"({guard})" if isinstance(guard, str) else str(guard)


def state_in(place: Place, scope: Scope) -> str:
    """Return ``In("name")`` for a state's id, its path, or a state value such as ``{"upload": "idle"}``."""
    names = []
    if not _paths(place.value):
        place.report.add("SB104", place.path, "no state is named", 'write "#id", a path, or {"state": "child"}')
    for path in _paths(place.value):
        states = scope.reading.states
        found = states.resolve(states.top, path)
        if found is None or not found.parent:
            place.report.add("SB101", place.path, f"no state {quote(path)}")
        names.append(found.name if found else path)
    return " and ".join(f"In({name!r})" for name in names) or "False"


def _paths(value: Any, prefix: str = "") -> list[str]:
    if isinstance(value, str):
        return [prefix + value]
    if isinstance(value, dict):
        return [path for key, item in value.items() for path in (_paths(item, f"{prefix}{key}.") or [f"{prefix}{key}"])]
    return []
