"""Writes actions as executable content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from machines.engine.definitions.model import Action, Case, Value
from machines.engine.definitions.report import Path

from .context import Writing, compact
from .javascript import Translator
from .markup import Tag

INTERNAL = "#_internal"


def write_actions(writing: Writing, actions: Iterable[Action]) -> list[Tag]:
    return [tag for action in actions for tag in _WRITERS[action.verb](writing, action)]


def write_block(writing: Writing, name: str, actions: tuple[Action, ...]) -> list[Tag]:
    """Write <onentry> or <onexit>: several of them if all actions are blocks."""
    if not actions:
        return []
    if all(action.verb == "block" for action in actions):
        return [Tag(name, children=write_actions(writing, action.cases[0].actions)) for action in actions]
    return [Tag(name, children=write_actions(writing, actions))]


def script(writing: Writing, value: Value, path: Path) -> str:
    return Translator(writing, path).text(value.tree)


def _set(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    location = writing.variables.get(action.name, action.name)
    return [Tag("assign", {"location": location, "expr": script(writing, action.value, action.path)})]


def _own(writing: Writing, action: Action) -> list[Tag]:
    """Write an action that SCXML does not have."""
    writing.ours(action.path, f"action {action.verb}")
    named = writing.at(action.path)
    if action.verb in ("unset", "append"):
        field = writing.variables.get(action.name, action.name)
        written: Any = field if action.verb == "unset" else {field: named}
        return [Tag("sb:action", text=compact({action.verb: written}))]
    return [Tag("sb:action", text=compact({action.verb: named}))]


def _raise(writing: Writing, action: Action) -> list[Tag]:
    if action.sending is not None:
        return _send(writing, action)
    if action.value is None and not action.computed:
        return [Tag("raise", {"event": action.name})]
    return [Tag("send", _event(writing, action) | {"target": INTERNAL}, _data(writing, action))]


def _event(writing: Writing, action: Action) -> dict[str, str | None]:
    if action.computed:
        return {"eventexpr": script(writing, action.computed, action.path)}
    return {"event": action.name}


def _data(writing: Writing, action: Action) -> list[Tag]:
    return write_data(writing, action.value, action.path)


def write_data(writing: Writing, value: Value | None, path: Path) -> list[Tag]:
    """Write parameters for an object, else <content>."""
    if value is None:
        return []
    translator, tree = Translator(writing, path), value.tree
    if tree[0] == "obj" and len(tree) > 1 and all(key for key, _ in tree[1:]):
        return [Tag("param", {"name": key, "expr": translator.text(item)}) for key, item in tree[1:]]
    return [Tag("content", {"expr": translator.text(tree)})]


def _send(writing: Writing, action: Action) -> list[Tag]:
    sending = action.sending
    assert sending is not None
    attributes = _event(writing, action)
    if sending.to is not None:
        attributes |= _literal_or_not(writing, "target", sending.to, action.path)
    if sending.type is not None:
        attributes |= _literal_or_not(writing, "type", sending.type, action.path)
    if sending.id:
        attributes["id"] = sending.id
    elif sending.computed:
        writing.ours(action.path, "calculated id of a send")
        return [Tag("sb:action", text=compact({action.verb: writing.at(action.path[:-1])}))]
    if sending.idlocation:
        attributes["idlocation"] = writing.variables.get(sending.idlocation, sending.idlocation)
    attributes |= delay(writing, sending.delay, action.path)
    return [Tag("send", attributes, _data(writing, action))]


def _literal_or_not(writing: Writing, name: str, value: Value, path: Path) -> dict[str, str | None]:
    tree = value.tree
    if tree[0] == "str":
        return {name: tree[1]}
    if tree[0] == "obj":  # a machine and an id
        parts = dict(tree[1:])
        machine = parts["machine"][1]
        id = Translator(writing, path).value(parts["id"]).at(6)
        return {f"{name}expr": f"'#_scxml_{machine}/' + {id}"}
    return {f"{name}expr": script(writing, value, path)}


def delay(writing: Writing, value: Value | None, path: Path) -> dict[str, str | None]:
    if value is None:
        return {}
    if value.tree[0] == "num":
        return {"delay": f"{value.tree[1]}ms"}
    if Translator(writing, path).types(value.tree) != frozenset({"string"}):
        message = "a calculated delay is a number of ms here; SCXML wants a text with a unit"
        writing.once("SB224", value.parts[0][0] if value.parts else path, message)
    return {"delayexpr": script(writing, value, path)}


def _cancel(writing: Writing, action: Action) -> list[Tag]:
    if action.computed:
        return [Tag("cancel", {"sendidexpr": script(writing, action.computed, action.path)})]
    return [Tag("cancel", {"sendid": action.name})]


def _log(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    tree, translator = action.value.tree, Translator(writing, action.path)
    if tree[0] == "obj" and [key for key, _ in tree[1:]] == ["label", "value"] and tree[1][1][0] == "str":
        return [Tag("log", {"label": tree[1][1][1], "expr": translator.text(tree[2][1])})]
    return [Tag("log", {"expr": translator.text(tree)})]


def guard(writing: Writing, case: Case) -> str | None:
    if case.guard is None:
        return None
    return Translator(writing, case.guard.path).condition(case.guard.expression.tree).text


def _if(writing: Writing, action: Action) -> list[Tag]:
    first, *others = action.cases
    children = write_actions(writing, first.actions)
    for case in others:
        condition = guard(writing, case)
        children.append(Tag("else") if condition is None else Tag("elseif", {"cond": condition}))
        children += write_actions(writing, case.actions)
    return [Tag("if", {"cond": guard(writing, first) or "true"}, children)]


def _foreach(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    attributes: dict[str, str | None] = {
        "array": script(writing, action.value, action.path),
        "item": writing.variables.get(action.name, action.name),
    }
    if action.index:
        attributes["index"] = writing.variables.get(action.index, action.index)
    return [Tag("foreach", attributes, write_actions(writing, action.cases[0].actions))]


def _block(writing: Writing, action: Action) -> list[Tag]:
    writing.ours(action.path, "block inside a block")
    return [Tag("sb:block", children=write_actions(writing, action.cases[0].actions))]


_WRITERS: dict[str, Callable[[Writing, Action], list[Tag]]] = {
    "set": _set,
    "unset": _own,
    "append": _own,
    "raise": _raise,
    "send": _send,
    "cancel": _cancel,
    "enqueue": _own,
    "emit": _own,
    "log": _log,
    "if": _if,
    "foreach": _foreach,
    "block": _block,
}
