"""Encodes actions as the lists that the functions library interprets: ``["set", "n", NODE]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .model import Action, Case, Value, Work


def encode_actions(actions: Iterable[Action]) -> list[list[Any]]:
    return [_action(action) for action in actions]


def _action(action: Action) -> list[Any]:
    value = [action.value.tree] if action.value else []
    if action.verb == "log":
        return ["log", *value]
    if action.verb == "enqueue":
        return _encode_enqueue(action)
    if action.verb == "send":
        return ["send", _encode_send(action)]
    if action.verb == "if":
        return ["if", [_case(case) for case in action.cases]]
    if action.verb == "block":
        return ["block", encode_actions(action.cases[0].actions)]
    if action.verb == "foreach":
        return ["foreach", _loop(action)]
    return [action.verb, _encode_name(action.name, action.computed), *value]


def _encode_enqueue(action: Action) -> list[Any]:
    """Encode an enqueue; defaults are left out."""
    node: list[Any] = ["enqueue", action.name, action.src]
    options = encode_options(action.work or Work())
    if action.value or options:
        node.append(action.value.tree if action.value else ["null"])
    return [*node, options] if options else node


def encode_options(work: Work) -> dict[str, Any]:
    """Encode how a job is worked on; defaults are left out."""
    usual = Work()
    parts = {name: getattr(work, name) for name in ("attempts", "backoff", "lease", "timeout", "jitter")}
    options = {name: part for name, part in parts.items() if part != getattr(usual, name)}
    if work.priority:
        literal = work.priority.tree[0] == "num"
        options["priority"] = work.priority.tree[1] if literal else work.priority.tree
    if work.delay:
        options["delay"] = work.delay.tree
    if work.unique:
        options["unique"] = work.unique.tree
    if work.stop:
        options["stop"] = " ".join(work.stop)
    return options


def _encode_name(name: str, computed: Value | None) -> Any:
    """Encode a name: text for a literal, a node (a list) for an expression."""
    return computed.tree if computed else name


def _encode_send(action: Action) -> dict[str, Any]:
    sending = action.sending
    assert sending is not None
    parts: dict[str, Any] = {
        "event": _encode_name(action.name, action.computed),
        "to": sending.to.tree if sending.to else None,
        "data": action.value.tree if action.value else None,
        "delay": sending.delay.tree if sending.delay else None,
        "id": _encode_name(sending.id, sending.computed),
        "idlocation": sending.idlocation,
        "type": sending.type.tree if sending.type else None,
    }
    return {key: part for key, part in parts.items() if part}


def _case(case: Case) -> dict[str, Any]:
    result: dict[str, Any] = {"then": encode_actions(case.actions)}
    if case.guard:
        result = {"guard": case.guard.expression.tree, "text": case.guard.expression.text} | result
    return result


def _loop(action: Action) -> dict[str, Any]:
    assert action.value is not None
    result: dict[str, Any] = {"in": action.value.tree, "item": action.name}
    if action.index:
        result["index"] = action.index
    return result | {"do": encode_actions(action.cases[0].actions)}
