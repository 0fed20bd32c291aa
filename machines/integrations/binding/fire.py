"""Fires for a row, in the caller: at once, or by the outbox where a transaction is open."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connections, router
from django.db.models import Model

from machines.connections import get_engine
from machines.engine import BadPayload, Conflict, Instance, SimulatedStep, UnknownInstance, arguments, limits
from machines.instances import actions as instances
from machines.instances.guesses import spend_explanation
from machines.people import transition_groups
from machines.people.actor import Actor
from machines.people.redaction import redacting

from . import delivery, following, outbox, reading, state_columns
from .errors import CreationWaits
from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as ``BoundState.fire`` takes it."""

    name: str
    payload: dict[str, Any]
    user: Any
    actor: str
    expect: int | None
    key: str | None
    reason: str

    def check(self) -> None:
        """Refuse at once what no attempt would make better. Raises BadInput."""
        arguments.check_event(self.name)
        arguments.encode_fields("payload", self.payload, limits.MAX_PAYLOAD)
        arguments.encode_whole("expect", self.expect)
        arguments.check_key(self.key)
        arguments.check_actor(self.actor)
        arguments.check_reason(self.reason)


def fire(field: MachineField, row: Model, event: Event, *, check: bool = False) -> Instance | OutboxEntry:
    """Fire, and write the columns; or put the event into the outbox, with ``check`` if it would be taken now."""
    id, using = field.instance_id(row), alias_of(row)
    if state_columns.is_in_transaction(using):
        return _put(field, row, id, using, event, check)
    after = read(field, row, lambda id: _send(field, row, id, using, event))
    write_through(field, row, after, using)
    return after


def read(field: MachineField, row: Model, ask: Callable[[str], Answer]) -> Answer:
    """Ask for the instance of a row; where it has none yet, as ``bulk_create`` leaves rows, it is created and asked for
    again. Inside a transaction that waits for the commit: CreationWaits."""
    id, using = field.instance_id(row), alias_of(row)
    try:
        return ask(id)
    except UnknownInstance:
        if state_columns.is_in_transaction(using):
            if getattr(row, field.revision_name):
                raise
            raise CreationWaits(field.machine, id) from None
        with following.hiding_values(field.machine):
            if not delivery.ensure_instance(field, id, using):
                raise
    return ask(id)


def refresh(field: MachineField, row: Model) -> None:
    """Read the instance and write what the row says otherwise, also where its revision is ahead. Raises
    CreationWaits, UnknownInstance, EngineUnavailable."""
    id, using = field.instance_id(row), alias_of(row)
    seen = state_columns.read(field, [id], using).get(
        id
    )  # before the instance: what is later than it now was never true
    there = read(field, row, lambda id: get_engine().get(field.machine, id))
    if seen is not None and seen.revision >= there.revision:
        state_columns.replace(field, id, there.state, there.revision, using, seen=seen)
        state_columns.remember(field, row, there.state, there.revision, anyhow=True)
    else:
        write_through(field, row, there, using)


def write_through(field: MachineField, row: Model, after: Instance, using: str) -> None:
    """Write the columns. The step has happened: whatever is raised here, the caller hears of the step, and a worker
    writes the columns from the log."""
    try:
        state_columns.advance(field, after.id, after.state, after.revision, using)
    except Exception as error:
        log.warning("%s %s is at revision %d, which is left for a worker: %s: %s", field.label, after.id,
                    after.revision, type(error).__name__, error)  # fmt: skip
    state_columns.remember(field, row, after.state, after.revision)


def alias_of(row: Model) -> str:
    """Return the database that the row is written to, also where it was read from a replica."""
    return router.db_for_write(type(row), instance=row)


def _send(field: MachineField, row: Model, id: str, using: str, event: Event) -> Instance:
    """Send an event to an instance that has today's values of the row."""
    expect = event.expect
    if field.follows:
        if expect is not None:
            expect = following.pass_edits(field, id, expect)
        there, expect = following.follow(field, id, using, expect)
        state_columns.remember(field, row, there.state, there.revision)
    if event.user is not None:
        return instances.fire(
            Actor(event.user, delivery.DOOR), field.machine, id, event.name, event.payload,
            expect=expect, key=event.key, reason=event.reason,
        )  # fmt: skip
    return get_engine().fire(
        field.machine, id, event.name, event.payload,
        expect=expect, key=event.key, actor=event.actor, reason=event.reason,
    )  # fmt: skip


def _put(field: MachineField, row: Model, id: str, using: str, event: Event, check: bool) -> OutboxEntry:
    """Put an event into the outbox. Raises Forbidden and UnknownEvent at once, with ``check`` all that it would meet
    now; the rules of transitions and approvals hold when it is sent."""
    event.check()
    name, user_id = event.actor, ""
    if event.user is not None:
        actor = Actor(event.user, delivery.DOOR)
        actor.demand("fire", field.machine, action="fire", instance=id, target=event.name, reason=event.reason)
        name, user_id = actor.name, actor.id
    if check:
        demand_taken(field, row, id, using, event)
    else:
        reading.demand_listener(field.machine, id, event.name, str(getattr(row, field.attname)))
    return outbox.put(
        field, row, id, using, OutboxEntry.Kind.FIRE, key=event.key, event=event.name, payload=event.payload,
        expect=event.expect, actor=name, user_id=user_id, reason=event.reason,
    )  # fmt: skip


def demand_taken(field: MachineField, row: Model, id: str, using: str, event: Event) -> None:
    """Lock the row until the end of the transaction, and raise what the event would meet if the transaction committed
    now: after what waits in the outbox, with the columns that the field follows. Raises Refused, NotAllowed,
    BadPayload, Conflict, Suspended, EngineUnavailable."""
    if connections[using].features.has_select_for_update:
        state_columns.rows(field, using).select_for_update().filter(pk=row.pk).values_list("pk").first()
    seen = state_columns.read(field, [id], using).get(
        id, state_columns.Columns("", 0)
    )  # the object may be older than its instance
    if seen.state and not seen.revision:
        return  # its instance begins in the state that another library left: there is nothing to try the event on
    waiting = list(outbox.entries(field, id, using).filter(state=OutboxEntry.State.WAITING))
    created = None if seen.revision else _make_creation_data(field, row, id, using, waiting)
    events = [{"event": one.event, "payload": one.payload} for one in waiting if one.kind == OutboxEntry.Kind.FIRE]
    asked: dict[str, Any] = {"event": event.name, "payload": event.payload}
    with _asking(field, id, event, asked):
        if event.expect is not None and created is None and not events:
            _demand_revision(field, id, event.expect)
        edits = _list_edits(field, id, using) if created is None and field.follows else []
        with following.hiding_values(field.machine):
            steps = get_engine().preview_events(field.machine, id, [*edits, *events, asked], created)
            _demand_values(steps)
        steps[-1].demand_taken(field.machine, id)


def _demand_revision(field: MachineField, id: str, expect: int) -> None:
    """Raise Conflict unless the instance is at the revision ``expect``, or was only brought up to its row since."""
    there = get_engine().get(field.machine, id).revision
    if there != expect and not (field.follows and following.pass_edits(field, id, expect) == there):
        raise Conflict(field.machine, id, expected=expect, actual=there)


def _list_edits(field: MachineField, id: str, using: str) -> list[dict[str, Any]]:
    """Return the input that brings a copy of the instance up to its row; none where it has the row's values."""
    there = get_engine().get(field.machine, id)
    changes = following.list_differences(field, there, following.read(field, [id], using).get(id, {}))
    return [{"edit": changes}] if changes else []


def _demand_values(steps: list[SimulatedStep]) -> None:
    """Raise BadPayload where the values of the row did not get into the copy: the event was tried on others."""
    for step in steps:
        if step.event in ("(edit)", "(create)") and not step.taken:
            raise BadPayload(str(step.error))


def _make_creation_data(
    field: MachineField, row: Model, id: str, using: str, waiting: list[OutboxEntry]
) -> dict[str, Any]:
    """Return the data of an instance that is not created yet."""
    given = next((one.payload for one in waiting if one.kind == OutboxEntry.Kind.CREATE), None)
    data = field.creation_data(row) if given is None else dict(given)
    return data | following.read_set(field, [id], using).get(id, {})


@contextlib.contextmanager
def _asking(field: MachineField, id: str, event: Event, asked: dict[str, Any]) -> Iterator[None]:
    """Ask for the person behind the event: with their groups, one guess at hidden values, and without these values."""
    if event.user is None:
        yield
        return
    actor, groups = Actor(event.user, delivery.DOOR), transition_groups.groups_of(event.user)
    spend_explanation(actor, field.machine, id, event.name, event.payload)
    if groups is not None:
        asked["groups"] = sorted(groups)
    with redacting(actor, field.machine):
        yield
