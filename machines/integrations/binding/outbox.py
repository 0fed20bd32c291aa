"""Puts creations, events, changes and deletions of rows into the outbox, in the transaction of the row; and the
background duty that sends them, and has instances created for rows that no signal announced."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from machines.conf.database import DatabaseDuty, delete_some
from machines.connections import get_engine, get_pattern
from machines.engine import BadInput, Instance, InstanceExists, SignalboxError
from machines.patterns import Throttle

from . import delivery, following, registry, state_columns
from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

KEEP_DONE = timedelta(days=7)
KEEP_FAILED = timedelta(days=90)
PRUNE = 500  # rows that a pass removes at most
SWEEP = 1000  # rows without an instance that one call looks after


def put_creation(field: MachineField, row: Model, using: str) -> OutboxEntry:
    """Have the instance of a new row created after the commit; that of an older row in the state that the row has."""
    payload, state = field.creation_data(row), state_columns.earlier_state(field, row)
    return put(field, row, field.find_id(row), using, OutboxEntry.Kind.CREATE, payload=payload, event=state)


def put(
    field: MachineField, row: Model | None, id: str, using: str, kind: str, *, key: str | None = None, **asked: Any
) -> OutboxEntry:
    """Have what is asked of an instance done after the commit. ``row``: as the process has it, None for one that is
    deleted."""
    made = _put(field, id, using, kind=kind, key=key, **asked)
    _send_after_commit(field, made, using, row)
    return made


def create_missing(field: MachineField, using: str, *, after: Any = None, most: int = SWEEP) -> tuple[int, Any]:
    """Create the instances of rows that no signal announced, as ``bulk_create`` makes them; return how many rows were
    looked after, and after which row to go on, None for the first. One call of Redis for all.

    A row whose creation was tried is left alone: the outbox holds the outcome. Raises UnknownMachine,
    EngineUnavailable.
    """
    name = field.id_field.attname
    new = state_columns.rows(field, using).filter(**{field.attname: "", field.revision_name: 0}).order_by(name)
    new = new.filter(**({f"{name}__isnull": False} if after is None else {f"{name}__gt": after}))
    page = list(new[:most])
    if not page:
        return 0, None
    found = {str(id): row for row in page if state_columns.check_id(id := getattr(row, name)) is None}
    last = getattr(page[-1], name) if len(page) == most else None
    tried = OutboxEntry.objects.using(using).filter(machine=field.machine, instance__in=list(found), kind="create")
    for id in tried.values_list("instance", flat=True):
        found.pop(id, None)
    given = {id: data for id, row in found.items() if (data := make_data(field, id, row)) is not None}
    answers = create_many(field, given, using)
    failed = [id for id, answer in answers.items() if isinstance(answer, SignalboxError)]
    there = [id for id in failed if isinstance(answers[id], InstanceExists)]  # of another worker, as a rule
    found_there = get_engine().get_many(field.machine, there) if there else []
    new_ones = [one for one in found_there if isinstance(one, Instance) and one.revision <= 1]
    state_columns.advance_many(field, new_ones, using)
    for id, seen in state_columns.read(field, failed, using).items():
        if not seen.revision:  # the outbox tries again where that helps, and keeps the outcome
            _put(field, id, using, kind=OutboxEntry.Kind.CREATE, payload=given[id])
    return len(given), last


def create_many(
    field: MachineField, given: Mapping[str, dict[str, Any]], using: str
) -> dict[str, Instance | SignalboxError]:
    """Create instances, id -> data beside the columns that are followed, and write the columns of their rows. Raises
    UnknownMachine, EngineUnavailable."""
    if not given:
        return {}
    followed = following.read_set(field, given, using)
    wanted = {id: data | followed.get(id, {}) for id, data in given.items()}
    answers = dict(zip(wanted, get_engine().create_many(field.machine, wanted), strict=True))
    state_columns.advance_many(field, (one for one in answers.values() if isinstance(one, Instance)), using)
    return answers


def make_data(field: MachineField, id: str, row: Model) -> dict[str, Any] | None:
    """Return the data of a creation; what the project's own ``data`` raises must not hold up the rows behind it."""
    try:
        data: dict[str, Any] = json.loads(json.dumps(field.creation_data(row)))
    except Exception:
        log.exception("the data of %s %s could not be made: its instance is not created", field.label, id)
        return None
    return data


def ensure_creation(field: MachineField, row: Model, using: str) -> OutboxEntry:
    """Have the instance of a row without one created now, also where that failed before; return the entry."""
    id = field.find_id(row)
    waiting = entries(field, id, using).filter(kind=OutboxEntry.Kind.CREATE, state=OutboxEntry.State.WAITING)
    if (entry := waiting.first()) is None:
        return put_creation(field, row, using)
    waiting.update(due=timezone.now())
    delivery.send_soon(field, entry, using, row)
    return entry


def entries(field: MachineField, id: str, using: str) -> QuerySet[OutboxEntry]:
    """Return what the outbox holds of one instance, the oldest first."""
    return OutboxEntry.objects.using(using).filter(machine=field.machine, instance=id).order_by("pk")


def prune(using: str) -> None:
    """Remove entries that ended long ago, a few at a time."""
    now, ended = timezone.now(), OutboxEntry.objects.using(using).order_by("pk")
    delete_some(ended.filter(state=OutboxEntry.State.DONE, ended_at__lt=now - KEEP_DONE), PRUNE)
    delete_some(ended.filter(state=OutboxEntry.State.FAILED, ended_at__lt=now - KEEP_FAILED), PRUNE)


def _put(field: MachineField, id: str, using: str, *, key: str | None = None, **facts: Any) -> OutboxEntry:
    if using not in field.databases():
        raise BadInput(
            f"{field.label} looks after the rows of {', '.join(field.databases())}, and this one is in {using!r}:"
            f" name it in databases= of the field"
        )
    if facts.get("payload"):
        facts["payload"] = get_engine().encrypt(field.machine, facts["payload"])
    made = OutboxEntry(
        key=key or f"outbox-{secrets.token_hex(16)}", field=field.label, machine=field.machine, instance=id, **facts
    )
    made.save(using=using, force_insert=True)
    return made


def _send_after_commit(field: MachineField, entry: OutboxEntry, using: str, row: Model | None) -> None:
    """Send it in this process once it is committed, which is now where no transaction is open. A worker sends what this
    process does not come to."""
    transaction.on_commit(partial(delivery.send_soon, field, entry, using, row), using=using, robust=True)


class OutboxSender(DatabaseDuty):
    """Sends what is due, has instances created for rows that have none, and removes old entries.

    Where the project has no field, or has none any more, it ends the entries that earlier fields left.
    """

    MESSAGE = "events of rows wait for the database: %s"
    NONE = 30.0  # seconds between two passes where the project has no machine field
    EVERY = 0.5  # seconds between two passes that find nothing
    SWEEP = 10.0  # seconds between two looks for rows without an instance
    PRUNE = 60.0  # seconds between two looks for old entries

    def __init__(self) -> None:
        self._fields = registry.list_fields()
        self._swept = self._pruned = -float("inf")
        self._unfinished: list[tuple[MachineField, str]] = []  # tables whose rows are looked at now
        self._aliases: list[str] = []
        self._after: dict[tuple[str, str], Any] = {}  # up to which row each table was swept

    def pause(self) -> float:
        return self.EVERY if self._fields else self.NONE

    def look(self) -> bool:
        now = time.monotonic()
        if now - self._swept >= self.SWEEP:
            self._swept = now
            self._aliases = registry.list_outboxes()
            if self._fields and get_pattern(Throttle).count("bind.sweep", "turn", limit=1, per=self.SWEEP).allowed:
                self._unfinished = [(field, using) for field in self._fields for using in field.databases()]
        self._unfinished = [one for one in self._unfinished if self._create_missing(*one)]
        sent = sum(delivery.send_due(using) for using in self._aliases)
        if now - self._pruned >= self.PRUNE:
            self._pruned = now
            for using in self._aliases:
                prune(using)
        return sent > 0 or bool(self._unfinished)

    def _create_missing(self, field: MachineField, using: str) -> bool:
        """Create the instances of a page of rows that have none; tell whether to go on at once. Where none of a page
        could be created, the next page has its turn with the next look."""
        place = field.label, using
        try:
            count, self._after[place] = create_missing(field, using, after=self._after.get(place))
        except SignalboxError as error:
            log.info("rows of %s without an instance wait: %s", field.label, error)
            return False
        return count > 0 and self._after[place] is not None
