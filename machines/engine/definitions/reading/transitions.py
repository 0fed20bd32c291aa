"""Reads transitions under ``on``, ``always``, ``after``, ``onDone`` and ``onError``."""

from __future__ import annotations

from dataclasses import replace

from machines.engine import limits
from machines.engine.definitions.durations import read_after
from machines.engine.definitions.findings import quote
from machines.engine.definitions.model import Cause, Transition
from machines.engine.definitions.place import Place
from machines.engine.definitions.scope import Scope
from machines.engine.definitions.values import read_guard

from .actions import read_actions

KEYS = ("target", "guard", "actions", "reenter", "allow", "description", "meta")
_HINTS = {
    "cond": 'write "guard"',
    "internal": 'write "reenter", the other way round',
    "external": 'write "reenter"',
    "in": 'write a guard: In("state")',
    "action": 'write "actions"',
}


def read_on(place: Place, scope: Scope) -> tuple[Transition, ...]:
    """Read the transitions of a state's ``on``, in document order."""
    if not place.is_object("an object of events and transitions"):
        return ()
    transitions: list[Transition] = []
    for descriptor, below in place.items():
        _check_descriptor(descriptor, below)
        transitions += read_transitions(below, "on", (descriptor,), scope)
    return tuple(transitions)


def _check_descriptor(descriptor: str, place: Place) -> None:
    if not descriptor:
        place.error("SB107", "an event's name is empty", 'transitions without an event stand under "always"')
        return
    why = None if descriptor == "*" else limits.check_event_name(descriptor.removesuffix(".*"))
    if why is not None:
        place.error("SB107", f"the event {quote(descriptor)} {why}", "patterns are * and prefix.*")


def read_after_transitions(place: Place, scope: Scope) -> tuple[Transition, ...]:
    """Read the transitions of a state's ``after``: those of one delay share the event of its timer."""
    if not place.is_object("an object of delays and transitions", 'write {"30s": "state"}'):
        return ()
    transitions: list[Transition] = []
    for text, below in place.items():
        delay = read_after(text, below)
        found = read_transitions(below, "after", (), scope)
        events = (f"after.{found[0].id}",) if found else ()
        for position, transition in enumerate(found):
            transitions.append(replace(transition, events=events, delay=None if position else delay))
    return tuple(transitions)


def read_transitions(place: Place, cause: Cause, events: tuple[str, ...], scope: Scope) -> tuple[Transition, ...]:
    """Read one transition or a list of them; a text is a target."""
    if place.broken:
        return ()
    found = (_read_transition(one, cause, events, scope) for one in place.one_or_many())
    return tuple(transition for transition in found if transition is not None)


def _read_transition(place: Place, cause: Cause, events: tuple[str, ...], scope: Scope) -> Transition | None:
    id = scope.next_id()
    if isinstance(place.value, str):
        return Transition(id, cause, events, _read_target(place, scope), None, (), False, "", place.path)
    if not place.is_object("a transition", 'write {"target": "state"} or the name of a state'):
        return None
    place.refuse_unknown(KEYS, _HINTS)
    guard = place.part("guard")
    if isinstance(guard.value, dict):
        guard.error("SB104", "expected an expression in quotes, found an object", 'write "failed < 3"')
    return Transition(
        id=id,
        cause=cause,
        events=events,
        targets=_read_target(place.part("target"), scope),
        guard=None if isinstance(guard.value, dict) else read_guard(guard),
        actions=read_actions(place.part("actions")),
        reenter=bool(place.part("reenter").flag()),
        description=place.part("description").text() or "",
        path=place.path,
        allow=_read_allow(place.part("allow"), cause),
    )


def _read_allow(place: Place, cause: Cause) -> tuple[str, ...]:
    """Read the groups of people who may send the event; empty for anyone."""
    if not place.is_array("a list of groups"):
        return ()
    if cause != "on":
        place.error(
            "SB104", f"no person sends this event: {quote('allow')} belongs to a transition under {quote('on')}"
        )
        return ()
    if not 0 < len(place.value) <= limits.MAX_GROUPS:
        place.error("SB114", f"a list of 1 to {limits.MAX_GROUPS} groups, not of {len(place.value)}")
    names = [one.text("the name of a group") for one in place.one_or_many()]
    for one, name in zip(place.one_or_many(), names, strict=True):
        if name is not None and not (name.strip() and len(name) <= limits.MAX_GROUP_NAME):
            one.error("SB107", f"a group has a name of 1 to {limits.MAX_GROUP_NAME} characters")
    return tuple(name for name in names if name)


def _read_target(place: Place, scope: Scope) -> tuple[str, ...]:
    return tuple(branch.name for branch in scope.branches(place))
