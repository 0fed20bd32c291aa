"""Reads about the instance of a row: what it takes, where it was, how it looks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.utils.safestring import SafeString, mark_safe

from machines import diagrams
from machines.catalog.queries import outline_from, outline_of, read_current_row
from machines.connections import get_engine
from machines.engine import (
    BadPayload,
    EngineUnavailable,
    Explanation,
    Instance,
    NotAllowed,
    SignalboxError,
    Step,
    UnknownEvent,
    limits,
)
from machines.engine.definitions import EventOutline
from machines.engine.definitions.outline import is_match
from machines.instances import queries
from machines.instances.guesses import withhold
from machines.people import permissions, transition_groups
from machines.people.actor import Actor
from machines.people.errors import GuessedTooOften

from . import delivery
from .delivery import DOOR

if TYPE_CHECKING:
    from .bound_state import BoundState
    from .field import MachineField

VERSIONS = 20  # of a machine, the newest: whether one of them knows an event

_listened: set[tuple[str, str]] = set()  # machine and event, where a version was found that knows it


def get(field: MachineField, id: str) -> Instance:
    return get_engine().get(field.machine, id)


def explain(field: MachineField, id: str, event: str, payload: Mapping[str, Any] | None, user: Any) -> Explanation:
    if user is not None:
        return queries.explain(Actor(user, DOOR), field.machine, id, event, payload)
    return get_engine().explain(field.machine, id, event, payload)


def history(field: MachineField, id: str, limit: int, before: int | None, user: Any) -> list[Step]:
    if user is not None:
        return queries.history(Actor(user, DOOR), field.machine, id, limit=limit, before=before)
    return get_engine().history(field.machine, id, limit=limit, before=before)


def available(field: MachineField, id: str, user: Any) -> list[EventOutline]:
    """List the events that the instance takes, or may take with a payload; of a user those they may fire."""
    if user is not None and not permissions.allows(user, "fire", field.machine):
        return []
    instance = get(field, id)
    if instance.suspended is not None:
        return []
    listed = outline_of(field.machine, instance.version).events_of(instance.configuration)
    explanations = get_engine().explain_all(field.machine, id, [event.name for event in listed]) if listed else {}
    if user is not None:
        explanations = withhold(Actor(user, DOOR), field.machine, id, instance.revision, explanations)
    groups = None if user is None else transition_groups.groups_of(user)
    return [event for event in listed if _is_taken(event, explanations[event.name], groups)]


def _is_taken(
    event: EventOutline, explanations: Explanation | SignalboxError, groups: transition_groups.Groups
) -> bool:
    if isinstance(explanations, SignalboxError):
        return isinstance(explanations, BadPayload | GuessedTooOften)  # it needs fields that a person will fill in
    try:
        transition_groups.check_transitions(groups, explanations)
    except NotAllowed:
        return False
    return explanations.taken or (bool(event.fields) and explanations.why == "guards")


def available_events(states: Iterable[BoundState], user: Any = None) -> list[list[EventOutline]]:
    """List, for the states of many rows and in their order, the events that each accepts by the current version of its
    machine: a few queries for each machine and no call of Redis, so guards are not asked. For a ``user`` without the
    right to fire there are none."""
    found: list[list[EventOutline]] = []
    outlines: dict[str, Any] = {}
    for state in states:
        machine = state.field.machine
        if machine not in outlines:
            may = user is None or permissions.allows(user, "fire", machine)
            outlines[machine] = read_current_row(machine).outline if may else None
        outline = outlines[machine]
        found.append(outline.events_of(leaves(state)) if outline is not None else [])
    return found


def leaves(state: str) -> list[str]:
    """Return the leaf states that a column's text names."""
    return [name for name in state.split(", ") if name]


def demand_listener(machine: str, id: str, event: str, state: str) -> None:
    """Raise UnknownEvent where no version of the machine knows the event. Without an answer of Redis, or a published
    machine, that is seen when the event is sent."""
    if (machine, event) in _listened or delivery.is_away():
        return
    known: dict[str, None] = {}
    try:
        versions = sorted(get_engine().versions(machine), reverse=True)
        for version in versions[:VERSIONS]:
            known |= dict.fromkeys(_list_known_events(get_engine().definition(machine, version)))
            if any(is_match(descriptor, event) for descriptor in known):
                _listened.add((machine, event))
                return
    except SignalboxError as error:
        if isinstance(error, EngineUnavailable):
            delivery.note_away()
        return
    if len(versions) <= VERSIONS:
        raise UnknownEvent(
            Explanation(machine, id, event, False, 0, leaves(state), why="unknown event", known_events=sorted(known))
        )


def _list_known_events(definition: dict[str, Any]) -> list[str]:
    """Return the names and patterns of external events that a definition declares or listens for."""
    outline = outline_from(json.dumps(definition))
    listening = [transition for state in outline.states for transition in state.transitions if transition.cause == "on"]
    heard = [name for transition in listening for name in transition.events]
    return [*outline.events, *(name for name in heard if not limits.is_reserved_event(name))]


def diagram(machine: str, state: str) -> SafeString:
    """Return the diagram of a machine's current version with the leaf states of a text highlighted; states that only
    another version has are left out. Raises UnknownMachine."""
    version = read_current_row(machine)
    ids = diagrams.index(version.outline)["states"]
    lit = diagrams.active(version.outline, [name for name in leaves(state) if name in ids])
    return mark_safe(diagrams.lit(version.svg, [ids[name] for name in lit]))  # noqa: S308  our own drawing
