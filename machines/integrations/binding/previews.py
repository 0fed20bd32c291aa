"""What an event of an open transaction would meet: tried on a copy of the instance, with the row as it is now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import Model

from machines.connections import get_engine
from machines.engine import BadPayload, Conflict, NotAllowed
from machines.engine.connection.replies import build_refusal
from machines.engine.simulation.records import BAD_PAYLOAD, NOT_ALLOWED, TAKEN, SimulatedStep
from machines.instances.queries import redacting
from machines.people import transition_groups
from machines.people.actor import Actor
from machines.people.limits import guesses

from . import columns, following, outbox
from .delivery import DOOR
from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField
    from .fire import Event

Kind = OutboxEntry.Kind


def demand_taken(field: MachineField, row: Model, id: str, using: str, event: Event) -> None:
    """Lock the row until the end of the transaction, and raise what the event would meet if the transaction committed
    now: after what waits in the outbox, with the columns that the field follows. Raises Refused, NotAllowed,
    BadPayload, Conflict, Suspended, EngineUnavailable."""
    if connections[using].features.has_select_for_update:
        columns.rows(field, using).select_for_update().filter(pk=row.pk).values_list("pk").first()
    if columns.earlier_state(field, row):
        return  # its instance begins in the state that another library left: there is nothing to try the event on
    waiting = list(outbox.entries(field, id, using).filter(state=OutboxEntry.State.WAITING))
    created = _find_creation_data(field, row, id, using, waiting)
    inputs: list[dict[str, Any]] = []
    if created is None and field.follows:
        inputs = [{"edit": found} for found in following.read(field, [id], using).values()]
    inputs += [{"event": one.event, "payload": one.payload} for one in waiting if one.kind == Kind.FIRE]
    asked: dict[str, Any] = {"event": event.name, "payload": event.payload}
    with _asking(field, id, event, asked):
        if event.expect is not None and created is None and not waiting:
            seen = get_engine().get(field.machine, id).revision
            if seen != event.expect:
                raise Conflict(field.machine, id, expected=event.expect, actual=seen)
        _judge(field, id, get_engine().preview_events(field.machine, id, [*inputs, asked], created)[-1])


def _find_creation_data(
    field: MachineField, row: Model, id: str, using: str, waiting: list[OutboxEntry]
) -> dict[str, Any] | None:
    """Return the data of an instance that is not created yet; None where it is there."""
    if getattr(row, field.revision_name):
        return None
    given = next((one.payload for one in waiting if one.kind == Kind.CREATE), None)
    data = field.creation_data(row) if given is None else dict(given)
    return data | following.read_set(field, [id], using).get(id, {})


@contextlib.contextmanager
def _asking(field: MachineField, id: str, event: Event, asked: dict[str, Any]) -> Iterator[None]:
    """Ask for the person behind the event: with their groups, one guess at hidden values, and without these values."""
    if event.user is None:
        yield
        return
    actor, groups = Actor(event.user, DOOR), transition_groups.groups_of(event.user)
    guesses.spend_explanation(actor, field.machine, id, event.name, event.payload)
    if groups is not None:
        asked["groups"] = sorted(groups)
    with redacting(actor, field.machine):
        yield


def _judge(field: MachineField, id: str, step: SimulatedStep) -> None:
    if step.outcome == TAKEN:
        return
    if step.outcome == BAD_PAYLOAD or step.explanation is None:
        raise BadPayload(str(step.error))
    if step.outcome == NOT_ALLOWED and step.not_allowed is not None:
        groups, transition = step.not_allowed["groups"], step.not_allowed["transition"]
        raise NotAllowed(field.machine, id, step.event, groups=groups, transition=transition)
    raise build_refusal(step.explanation)
