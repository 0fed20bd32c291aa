"""Writes actions: one of XState's own if it means the same, else a named action that only we understand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machines.engine.definitions.report import Path

from .context import Writing, one_or_many
from .values import fields_read, text_meant, write_expression, write_value

Action = dict[str, Any]


def write_actions(actions: Any, path: Path, writing: Writing) -> list[Action]:
    if actions is None:
        return []
    return [written for one in one_or_many(actions) for written in _write(one, path, writing)]


def _write(action: Action, path: Path, writing: Writing) -> list[Action]:
    verb, argument = (action["type"], action["params"]) if "type" in action else next(iter(action.items()))
    written = _WRITERS[verb](argument) if verb in _WRITERS else None
    if written is not None:
        return written
    message = f'XState has no action that does what this {verb} does; it is written as a named action "{verb}"'
    writing.once("SB222", path, message, "give it an implementation where XState is to run it")
    return [{"type": verb, "params": argument}]


def _builtin(name: str, **params: Any) -> list[Action]:
    return [{"type": f"xstate.{name}", "params": {key: value for key, value in params.items() if value is not None}}]


def _set(fields: dict[str, Any]) -> list[Action]:
    """Write assignments. A value that reads a field set before it starts a new ``assign``.

    XState computes all values of an ``assign`` before it sets any field.
    """
    groups: list[dict[str, Any]] = [{}]
    for name, value in fields.items():
        if fields_read(value) & set(groups[-1]):
            groups.append({})
        groups[-1][name] = write_value(value)
    return [action for group in groups for action in _builtin("assign", **group)] if fields else []


def _event(argument: Any) -> dict[str, Any] | None:
    """Write an event. XState keeps its fields beside its type; return None if they cannot be written there."""
    if isinstance(argument, str):
        return {"type": argument}
    name, data = argument.get("event"), argument.get("data")
    if isinstance(name, dict):
        name = name.get("type") if set(name) == {"type"} else None
    if not isinstance(name, str) or not isinstance(data, dict | None) or "type" in (data or {}):
        return None
    return {"type": name, **write_value(data or {})}


def _name(value: Any) -> Any:
    """Write an id, given or computed."""
    return write_expression(value["expr"]) if isinstance(value, dict) else value


def _raise(argument: Any) -> list[Action] | None:
    event = _event(argument)
    options = {} if isinstance(argument, str) else argument
    if event is None or ("id" in options and not options.get("delay")):
        return None
    return _builtin("raise", event=event, delay=_name(options.get("delay")), id=_name(options.get("id")))


def _send(argument: Any) -> list[Action] | None:
    """Write a send to the parent, to an invoked actor, or later to itself. XState does any other send in code."""
    if isinstance(argument, str) or {"type", "idlocation"} & set(argument):
        return None
    event, to = _event(argument), argument.get("to")
    options = {"delay": _name(argument.get("delay")), "id": _name(argument.get("id"))}
    if event is None:
        return None
    if to is None:
        return _builtin("raise", event=event, **options) if argument.get("delay") else None
    address = text_meant(to) if isinstance(to, str) else None
    if address == "#_parent":
        return _builtin("sendParent", event=event, **options)
    if address is None or not address.startswith("#_") or address.startswith(("#_internal", "#_scxml_")):
        return None
    return _builtin("sendTo", to=address.removeprefix("#_"), event=event, **options)


def _cancel(argument: Any) -> list[Action]:
    return _builtin("cancel", sendId=_name(argument))


def _log(argument: Any) -> list[Action]:
    return [{"type": "xstate.log", "params": {"message": write_value(argument)}}]


def _emit(argument: Any) -> list[Action] | None:
    event = _event({"event": argument["type"], "data": argument.get("data")})
    return None if event is None else _builtin("emit", event=event)


_WRITERS: dict[str, Callable[[Any], list[Action] | None]] = {
    "set": _set,
    "raise": _raise,
    "send": _send,
    "cancel": _cancel,
    "log": _log,
    "emit": _emit,
}
