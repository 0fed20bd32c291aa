"""The states of a definition."""

from __future__ import annotations

from typing import Any

from .. import limits
from .actions import read_actions
from .invokes import read_invokes
from .model import State
from .path import quote
from .place import Place
from .scope import Scope
from .transitions import read_on, read_transitions

KEYS = ("description", "type", "on", "always", "entry", "exit", "invoke", "tags", "meta", "id")
NOT_YET = {
    "states": "states inside states",
    "initial": "states inside states",
    "after": "timers (after)",
    "history": "history states",
    "target": "history states",
    "output": "the output of final states",
    "parallel": "parallel states",
}
_HINTS = {
    "onEntry": 'write "entry"',
    "onExit": 'write "exit"',
    "final": 'write "type": "final"',
    "events": 'write "on"',
}
_TYPES_NOT_YET = ("compound", "parallel", "history")


def scope_of(machine: str, place: Place | None) -> Scope:
    """The names of all states, before any of them is read: transitions may point forward."""
    states: dict[str, Any] = place.value if place and isinstance(place.value, dict) else {}
    ids = {
        body["id"]: name for name, body in states.items() if isinstance(body, dict) and isinstance(body.get("id"), str)
    }
    return Scope(machine, tuple(states), ids)


def read_states(place: Place, scope: Scope) -> dict[str, State]:
    if not place.is_object("an object of states"):
        return {}
    if not place.value:
        place.error("SB106", "the definition has no states")
    if len(place.value) > limits.MAX_STATES:
        place.error("SB111", f"{len(place.value)} states; at most {limits.MAX_STATES} are allowed")
        return {}
    return {name: _read_state(name, index, state, scope) for index, (name, state) in enumerate(place.items(), start=1)}


def _read_state(name: str, index: int, place: Place, scope: Scope) -> State:
    if (why := limits.check_state_name(name)) is not None:
        place.error("SB107", f"the state name {quote(name)} {why}")
    body = place if place.is_object("a state", "write {} for a state without anything") else None
    if body:
        _refuse_keys(body)
    parts = body or Place({}, place.path, place.report)
    description = parts.get("description")
    on = read_on(parts.get("on"), scope)
    invokes, finished = read_invokes(parts.get("invoke"), name, scope)
    return State(
        name=name,
        index=index,
        final=_read_type(parts.get("type")),
        description=(description.text() or "") if description else "",
        tags=_read_tags(parts.get("tags")),
        entry=read_actions(parts.get("entry")),
        exit=read_actions(parts.get("exit")),
        transitions=on + finished,
        always=read_transitions(parts.get("always"), "always", (), scope),
        invokes=invokes,
        path=place.path,
    )


def _refuse_keys(place: Place) -> None:
    for key, what in NOT_YET.items():
        if key in place:
            place.at(key).error("SB108", f"{what} are not yet available")
    for key in ("onDone", "onError"):
        if key in place:
            place.at(key).error("SB119", f'"{key}" belongs to an invoke, not to a state', 'write it inside "invoke"')
    place.refuse_unknown((*KEYS, *NOT_YET, "onDone", "onError"), _HINTS)
    if "id" in place:
        place.at("id").text("an id")


def _read_type(place: Place | None) -> bool:
    """Whether the state is final."""
    kind = place.text("a type") if place else None
    if place is None or kind is None or kind == "atomic":
        return False
    if kind in _TYPES_NOT_YET:
        place.error("SB108", f"{kind} states are not yet available")
    elif kind != "final":
        place.error("SB104", f"no type of state {quote(kind)}", '"final", or leave it out')
    return kind == "final"


def _read_tags(place: Place | None) -> tuple[str, ...]:
    if place is None or place.broken:
        return ()
    return tuple(tag.value for tag in place.one_or_many() if tag.text("a tag") is not None)
