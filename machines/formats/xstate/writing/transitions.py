"""Writes all kinds of transitions."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.report import Path, quote
from machines.engine.definitions.scope import Branch
from machines.formats.xstate.dialect import (
    DONE_ACTOR,
    DONE_INVOKE,
    DONE_STATE,
    DONE_STATE_5,
    ERROR_ACTOR,
    ERROR_INVOKE,
    OURS,
    TRANSITION_KEYS,
)
from machines.formats.xstate.events import covering

from .actions import write_actions
from .context import Writing, one_or_many, single
from .values import write_expression, write_guard


def write_on(on: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for event, transitions in on.items():
        name = _descriptor(event, (*path, event), writing)
        found = write_transitions(transitions, (*path, event), source, writing)
        written[name] = single([*_as_list(written.get(name)), *one_or_many(found)]) if name in written else found
    _check_order(list(written), path, writing)
    return written


def write_transitions(transitions: Any, path: Path, source: Branch, writing: Writing) -> Any:
    if isinstance(transitions, list):
        return [_write(one, (*path, index), source, writing) for index, one in enumerate(transitions)]
    return _write(transitions, path, source, writing)


def write_after(after: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    """Write delayed transitions by milliseconds, or by the expression that gives them."""
    written: dict[str, Any] = {}
    for delay, transitions in after.items():
        text = delay.strip()
        length = text if text.isdigit() else parse_duration(text)
        key = write_expression(text) if length is None else str(length)
        found = write_transitions(transitions, (*path, delay), source, writing)
        if key in written:
            message = f"two delays of {key} ms are one for XState: only one of their transitions is taken"
            writing.report.add("SB224", (*path, delay), message)
            found = [*one_or_many(written[key]), *one_or_many(found)]
        written[key] = found
    return written


def _write(transition: Any, path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    near = source.parent or source
    if isinstance(transition, str):
        return {"target": writing.target(transition, source, near)}
    written: dict[str, Any] = {}
    if transition.get("target") not in (None, []):
        targets = [writing.target(one, source, near) for one in one_or_many(transition["target"])]
        written["target"] = single(targets)
    guard = write_guard(transition.get("guard"))
    if guard is not None:
        written["guard"] = guard
    actions = write_actions(transition.get("actions"), (*path, "actions"), writing)
    if actions:
        written["actions"] = actions
    if transition.get("reenter"):
        written["reenter"] = True
    written |= {key: transition[key] for key in ("description", "meta") if key in transition}
    if ours := {key: transition[key] for key in TRANSITION_KEYS if key in transition}:
        written["meta"] = {**transition.get("meta", {}), OURS: ours}
    return written


def _descriptor(event: str, path: Path, writing: Writing) -> str:
    """Write a descriptor. The engine's own events have other names in XState."""
    for prefix, theirs in ((DONE_INVOKE, DONE_ACTOR), (ERROR_INVOKE, ERROR_ACTOR)):
        if event.startswith(prefix):
            return theirs + event.removeprefix(prefix)
    if event.startswith(DONE_STATE):
        word = event.removeprefix(DONE_STATE)
        found = next((branch for branch in writing.tree.branches if branch.word == word), None)
        return DONE_STATE_5 + (writing.id(found) if found else word)
    if event.split(".")[0] == "error":
        writing.once("SB222", path, f"XState raises no event {quote(event)}: there a failing action stops the machine")
    longer = writing.longer(event)
    if longer is not None:
        message = f"here the event {quote(event)} also takes {quote(longer)}; in XState only {quote(f'{event}.*')} does"
        writing.once("SB224", path, message)
    return event


def _check_order(names: list[str], path: Path, writing: Writing) -> None:
    """Report patterns that XState tries in another order.

    Here the first one in the document is tried first; XState tries only the most exact one.
    """
    places = {name: place for place, name in enumerate(names)}
    for other, other_place in places.items():
        for pattern in covering(other):
            if pattern in places and pattern.endswith("*"):
                said = "is tried before" if places[pattern] < other_place else "is tried when no guard holds for"
                message = f"the pattern {quote(pattern)} {said} {quote(other)} here, and not in XState"
                writing.once("SB224", (*path, pattern), message)


def _as_list(found: Any) -> list[Any]:
    return [] if found is None else one_or_many(found)
