"""Reads actions. XState's own have an equivalent here or a finding; a mere name becomes a message of that name."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote
from machines.formats.xstate.context import Scope
from machines.formats.xstate.dialect import VERBS, unbrace
from machines.formats.xstate.names import event_to_send
from machines.formats.xstate.source import implementations, scripts

from . import builtin_actions
from .values import literal, read_object, read_params

Action = dict[str, Any]


def read_actions(place: Place | None, scope: Scope) -> list[Action]:
    """Read one action or a list of them."""
    if place is None or place.value is None:
        return []
    return [action for one in place.one_or_many() for action in _read_action(one, scope)]


def _read_action(place: Place, scope: Scope) -> list[Action]:
    if isinstance(place.value, str):
        code = None if scope.reading.ours else unbrace(place.value)
        return _read_named(place, place.value, None, scope) if code is None else _read_code(place, code, scope)
    if not place.is_object("an action", 'write its name, or {"type": "name"}'):
        return []
    kind = place.get("type")
    name = kind.text("the name of an action") if kind else None
    if name is None:
        scope.reading.cannot(place, "the action has no type", 'write {"type": "name"}')
        return []
    if name.startswith("xstate."):
        return builtin_actions.read(place, name.removeprefix("xstate."), scope, read_actions)
    if scope.reading.ours and name in VERBS and "params" in place:
        return [{name: place.value["params"]}]
    return _read_named(place, name, place.get("params"), scope)


def _read_code(place: Place, code: str, scope: Scope) -> list[Action]:
    """Read an action that is a function. It becomes a message with the code, for its receiver to implement."""
    if code.isidentifier():
        return _read_named(place, code, None, scope)
    message = "the action is code; it is now a message that holds it"
    scope.reading.report.add("SB220", place.path, message, 'write out what it does, such as {"set": {...}}')
    return [{"emit": {"type": "inline", "data": {"code": literal(code)}}}]


def _read_named(place: Place, name: str, params: Place | None, scope: Scope) -> list[Action]:
    """Read a named action. It is translated if the text implements it, else it becomes a message to act on outside."""
    found = implementations.of("actions", name, scope)
    if found is not None and not scripts.is_code(found.value):
        return read_actions(found, implementations.deeper(scope, read_params(params, scope)))
    message: dict[str, Any] = {"type": event_to_send(name, place.path, scope.reading)}
    if params is not None and params.value not in ({}, None):
        message["data"] = read_object(params, scope, "params")
    scope.reading.report.add(
        "SB220",
        place.path,
        f"the action {quote(name)} is only a name; it is now a message of that name",
        'write out what it does, such as {"set": {"field": "expression"}}',
    )
    return [{"emit": message}]
