"""Writes states at any depth, and the machine as the state around them all."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.report import Path
from machines.engine.definitions.scope import Branch
from machines.formats.xstate.dialect import INVOKE_KEYS, OURS, STATE_KEYS

from .actions import write_actions
from .context import Writing, one_or_many, single
from .transitions import write_after, write_on, write_transitions
from .values import write_value


def write_state(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    """Write a state except for its name. For the machine, write what it shares with states."""
    written: dict[str, Any] = {}
    if branch.explicit:
        written["id"] = branch.explicit
    kind = body.get("type")
    if kind in ("parallel", "final", "history"):
        written["type"] = kind
    written |= {key: body[key] for key in ("description", "tags", "meta") if key in body}
    if ours := {key: body[key] for key in STATE_KEYS if key in body}:
        written["meta"] = {**body.get("meta", {}), OURS: ours}
    if kind == "history":
        return written | _history(body, path, branch, writing)
    if "initial" in body:
        written["initial"] = _initial(body["initial"], (*path, "initial"), branch, writing)
    for key in ("entry", "exit"):
        actions = write_actions(body.get(key), (*path, key), writing)
        written |= {key: actions} if actions else {}
    if body.get("invoke"):
        written["invoke"] = write_invokes(body["invoke"], (*path, "invoke"), branch, writing)
    written |= _moves(body, path, branch, writing)
    if "output" in body:
        written["output"] = write_value(body["output"])
    states = body.get("states") or {}
    if states:
        written["states"] = {
            key: write_state(below, (*path, "states", key), branch.children[key], writing)
            for key, below in states.items()
        }
    return written


def _moves(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if body.get("on"):
        written["on"] = write_on(body["on"], (*path, "on"), branch, writing)
    if body.get("after"):
        written["after"] = write_after(body["after"], (*path, "after"), branch, writing)
    for key in ("onDone", "always"):
        if key in body:
            written[key] = write_transitions(body[key], (*path, key), branch, writing)
    return written


def _initial(initial: Any, path: Path, branch: Branch, writing: Writing) -> Any:
    """Write the initial state. XState starts in one direct child; any other state can only be named by its id."""
    actions = write_actions(initial.get("actions"), (*path, "actions"), writing) if isinstance(initial, dict) else []
    named = one_or_many(initial.get("target") if isinstance(initial, dict) else initial)
    targets = []
    for text in named:
        found = writing.tree.find(text, branch, branch)
        near = found is not None and found.parent is branch
        targets.append(found.key if found and near else f"#{writing.id(found)}" if found else text)
        if not near:
            writing.report.add("SB222", path, "XState begins with a state right below; this one stands further inside")
    if len(targets) > 1:
        writing.report.add("SB222", path, "XState begins with one state, not with several")
    target = single(targets)
    return {"target": target, "actions": actions} if actions else target


def _history(body: dict[str, Any], path: Path, branch: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {"history": body["history"]} if "history" in body else {}
    target = body.get("target")
    if isinstance(target, dict):
        if target.get("actions"):
            writing.report.add("SB222", (*path, "target"), "XState has no actions on the way out of a history state")
        target = target.get("target")
    if target is not None and branch.parent is not None:
        parent = branch.parent
        written["target"] = single([writing.target(one, branch, parent) for one in one_or_many(target)])
    return written


def write_invokes(invokes: Any, path: Path, source: Branch, writing: Writing) -> Any:
    several = isinstance(invokes, list)
    found = enumerate(one_or_many(invokes))
    return single([_write(one, (*path, place) if several else path, source, writing) for place, one in found])


def _write(invoke: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {"src": invoke["src"] if isinstance(invoke["src"], str) else "computed"}
    written |= {key: invoke[key] for key in ("id", "description") if key in invoke}
    if "input" in invoke:
        written["input"] = write_value(invoke["input"])
    for key in ("onDone", "onError"):
        if key in invoke:
            written[key] = write_transitions(invoke[key], (*path, key), source, writing)
    ours = {key: invoke[key] for key in INVOKE_KEYS if key in invoke and key not in written}
    if written["src"] == "computed":
        ours["src"] = invoke["src"]
    for key in ours:
        message = f'XState has no "{key}" for an invoke; it stays below "meta", where only Signalbox reads it'
        writing.once("SB222", (*path, key), message)
    meta = {**invoke.get("meta", {}), **({OURS: ours} if ours else {})}
    return written | ({"meta": meta} if meta else {})
