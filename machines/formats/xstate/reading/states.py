"""Reads states at any depth, and the machine as the state around them all."""

from __future__ import annotations

from typing import Any

from machines.engine import limits
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote
from machines.formats.xstate.context import Reading, Scope
from machines.formats.xstate.dialect import OURS, STATE_KEYS
from machines.formats.xstate.target_tree import Branch

from . import invokes
from .actions import read_actions
from .invokes import read_invokes
from .transitions import read_after, read_on, read_target, read_transitions
from .values import read_value

BEHAVIOUR = ("on", "always", "after", "entry", "onEntry", "exit", "onExit", "invoke", "onDone")
KNOWN = (
    *BEHAVIOUR,
    *("id", "key", "type", "initial", "states", "history", "target", "output", "data", "tags", "description", "meta"),
    *("order", "transitions", "activities", "version"),
)
_TYPES = ("atomic", "compound", "parallel", "final", "history")


def read_states(place: Place | None, branch: Branch, reading: Reading) -> dict[str, Any]:
    if place is None or place.value is None or not place.is_object("an object of states"):
        return {}
    states = {}
    for key, below in place.items():
        if key in branch.children:
            states[key] = _read_state(below, branch.children[key], reading)
        else:
            below.error("SB111", f"states inside states more than {limits.MAX_STATE_DEPTH} levels deep")
    return states


def _read_state(place: Place, branch: Branch, reading: Reading) -> dict[str, Any]:
    if place.value is None or not place.is_object("a state", "write {} for a state without anything"):
        return {}
    reading.leave_out_unknown(place, KNOWN)
    kind = kind_of(place)
    state: dict[str, Any] = {}
    if branch.explicit and place.value.get("key") is None:
        state["id"] = branch.explicit
    if kind:
        state["type"] = kind
    if kind == "history":
        return state | _history(place, Scope(reading, branch)) | _read_kept(place, reading)
    parts = _final(place, Scope(reading, branch)) if kind == "final" else inside(place, branch, reading)
    return state | parts | _read_kept(place, reading)


def kind_of(place: Place) -> str:
    """Return the type of a state, if it says more than the states below it."""
    kind = place.value.get("type")
    if place.value.get("parallel") is True:
        return "parallel"
    if kind is None:
        return "history" if place.value.get("history") in ("deep", "shallow") else ""
    if kind not in _TYPES:
        place.at("type").error("SB104", f"no type of state {quote(str(kind))}", f"one of {', '.join(_TYPES)}")
    return kind if kind in ("parallel", "final", "history") else ""


def inside(place: Place, branch: Branch, reading: Reading) -> dict[str, Any]:
    """Read everything that a state does, and the states below it."""
    scope = Scope(reading, branch)
    on, always = read_on(place.get("on"), scope)
    parts: dict[str, Any] = {
        "initial": _initial(place, scope),
        "entry": read_actions(_either(place, "entry", "onEntry"), scope),
        "exit": read_actions(_either(place, "exit", "onExit"), scope),
        "invoke": read_invokes(place.get("invoke"), scope),
        "on": on,
        "onDone": read_transitions(place.get("onDone"), scope.finishing("event")),
        "after": read_after(place.get("after"), scope),
        "always": _eventless(always, read_transitions(place.get("always"), scope)),
        "states": read_states(place.get("states"), branch, reading),
    }
    if place.value.get("activities"):
        reading.cannot(place.at("activities"), "there are no activities here", 'let the state "invoke" a handler')
    if "*" in on and not reading.ours:
        parts = invokes.before_wildcard(parts, branch)
    return {key: value for key, value in parts.items() if value not in (None, [], {})}


def for_people(place: Place) -> dict[str, Any]:
    kept = {key: place.value.get(key) for key in ("tags", "description", "meta")}
    return {key: value for key, value in kept.items() if value not in (None, [], {}, "")}


def _read_kept(place: Place, reading: Reading) -> dict[str, Any]:
    """Return the description and ``meta``, and what the writer stored below ``meta`` for lack of another place."""
    kept = for_people(place)
    meta = kept.get("meta")
    if not reading.ours or not isinstance(meta, dict) or not isinstance(meta.get(OURS), dict):
        return kept
    others = {key: value for key, value in meta.items() if key != OURS}
    kept = {key: value for key, value in kept.items() if key != "meta"} | ({"meta": others} if others else {})
    return kept | {key: meta[OURS][key] for key in STATE_KEYS if key in meta[OURS]}


def _either(place: Place, *keys: str) -> Place | None:
    return next((place.at(key) for key in keys if key in place), None)


def _eventless(first: list[Any], more: Any) -> Any:
    found = first + (more if isinstance(more, list) else [] if more is None else [more])
    return found[0] if len(found) == 1 else found


def _initial(place: Place, scope: Scope) -> Any:
    """Read the initial state: a name, or a target with actions. A parallel state always enters all of its regions."""
    found = place.get("initial")
    if found is None or found.value is None:
        return None
    if kind_of(place) == "parallel":
        scope.reading.left_out(found.path, "a parallel state enters all of its regions")
        return None
    if not isinstance(found.value, dict):
        return found.value
    targets = _list(found.value.get("target"))
    names = [_child(target, scope) for target in targets]
    actions = read_actions(found.get("actions"), scope)
    target = names[0] if len(names) == 1 else names
    return {"target": target, "actions": actions} if actions else target


def _child(target: Any, scope: Scope) -> Any:
    """Return an initial target by the child's key, if it names a child.

    An expanded machine writes its initial state as ``#machine.state.child``.
    """
    named = isinstance(target, str) and target.startswith("#")
    found = scope.reading.states.find_by_id(target[1:]) if named else None
    return found.key if found is not None and found.parent is scope.state else target


def _history(place: Place, scope: Scope) -> dict[str, Any]:
    kind = place.value.get("history")
    parts: dict[str, Any] = {"history": kind} if kind in ("deep", "shallow") else {}
    if place.value.get("target") is not None:
        targets = [read_target(one, scope) for one in place.at("target").one_or_many()]
        parts["target"] = targets[0] if len(targets) == 1 else targets
    _leave_out(place, BEHAVIOUR, "a history state is never active", scope)
    return parts


def _final(place: Place, scope: Scope) -> dict[str, Any]:
    """Read a final state. XState 4 calls its output ``data``."""
    output = _either(place, "output", "data")
    entry = read_actions(_either(place, "entry", "onEntry"), scope)
    exit = read_actions(_either(place, "exit", "onExit"), scope)
    _leave_out(place, ("on", "always", "after", "invoke", "onDone", "states"), "a final state has no way out", scope)
    parts: dict[str, Any] = {"entry": entry, "exit": exit}
    if output is not None:
        parts["output"] = read_value(output, scope)
    return {key: value for key, value in parts.items() if value not in ([], None)}


def _leave_out(place: Place, keys: tuple[str, ...], why: str, scope: Scope) -> None:
    for key in keys:
        if place.value.get(key) not in (None, [], {}):
            scope.reading.left_out(place.below(key), f"{why}, so {quote(key)} means nothing there")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
