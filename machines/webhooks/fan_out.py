"""Makes deliveries of emitted messages: each message exactly once for each webhook whose filter matches it.

A message is acknowledged after the transaction that made its deliveries: a worker that dies between the two has it read
once more, by another one, and there is never a second delivery of a message for a webhook.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from machines.conf.database import DatabaseRetry, delete_some, prepare_check
from machines.connections import get_engine, get_throttle
from machines.engine import Engine, EngineFault, LookupFailed, SignalboxError
from machines.engine.limits import MAX_INSTANCE_ID
from machines.engine.messages.emitted import LogEntry, Place, read_entry
from machines.patterns.base import MAX_NOW
from machines.patterns.bus import StreamPage

from . import sender
from .consumer_group import ConsumerGroup
from .event_filter import ROLLOUT, STEP, matches_filter, wants_steps
from .message_body import Writer
from .models import Delivery, LogGap, Webhook

log = logging.getLogger(__name__)

LOGS = 16  # of which a pass reads a page
NOTE = 30.0  # seconds between two notes of how far the logs are read; one worker makes them
KEEP = timedelta(days=30)  # deliveries and gaps, whatever became of them
PRUNE = 500  # rows a pass removes at most
KINDS = ("emit", "step", "version")  # of the entries that are messages
LOGGED = timedelta(days=7).total_seconds()  # for which steps are logged when no worker asks again
RENEW = 60.0  # seconds between two times of asking
MAX_TYPE = 200  # characters of a delivery's type: twice as long as an event may be called


_has_emitting = prepare_check(Webhook.list_emitting())


class FanOut:
    """Every worker has one: they share the logs as one group of readers, and a message is made a delivery before it
    counts as read. ``wait``: seconds a pass that finds nothing waits for something."""

    IDLE = 5.0  # seconds between two looks for a webhook where there is none
    AWAY = 1.0  # seconds between two tries where the database does not answer
    REST = 0.2  # seconds after a pass that found something: what comes meanwhile shares the next transaction
    LISTEN = 0.02  # seconds after any other: what waits for messages is the pass itself

    def __init__(self, engine: Engine, *, wait: float = 1.0) -> None:
        self._engine = engine
        self._logs = ConsumerGroup(engine)
        self._wait = wait
        self._database = DatabaseRetry(log, "webhooks wait for the database: %s")
        self._idle, self._found = True, False
        self._lost: dict[Place, int] = {}  # in the log, not yet recorded here
        self._noted = time.monotonic()
        self._asked = -float("inf")

    def once(self) -> bool:
        """Make one pass. Tell whether there is more; what is wrong with the database waits, and is logged once."""
        with self._database.around():
            return self.look()
        return False

    def pause(self) -> float:
        if self._database.away:
            return self.AWAY
        if self._idle:
            return self.IDLE
        return self.REST if self._found else self.LISTEN

    def look(self) -> bool:
        """Return the same, with the errors of the database."""
        self._idle = not _has_emitting()
        if self._idle:
            self._logs.drop()
            return False
        if time.monotonic() - self._asked >= RENEW:
            self._asked = time.monotonic()
            self._ask_for_steps()
        places = self._logs.due(LOGS, wait=self._wait)
        if not places:
            self._note()
        self._found = bool(places)
        made = sum(self._pump(place) for place in places)
        if made:
            sender.call()
        return self._logs.more

    def _ask_for_steps(self) -> None:
        """Have the steps logged that a webhook is to get."""
        wanted = [webhook for webhook in Webhook.list_emitting() if wants_steps(webhook)]
        machines = {machine for webhook in wanted for machine in webhook.machines or self._engine.machines()}
        for machine in sorted(machines):
            with contextlib.suppress(LookupFailed):  # not published yet
                self._engine.emitted_logs().log_steps(machine, seconds=LOGGED)

    def _note(self) -> None:
        if time.monotonic() - self._noted >= NOTE:
            self._noted = time.monotonic()
            if get_throttle().count("webhooks.note", "turn", limit=1, per=NOTE).allowed:
                self._logs.note()

    def _pump(self, place: Place) -> int:
        """Read a page of one log; return how many deliveries it made."""
        try:
            taken = self._logs.take(place)
        except EngineFault as error:
            log.error("webhooks: the log of %s:%d cannot be read: %s", *place, error)
            self._logs.leave(place)
            return 0
        if taken.lost:
            log.warning("webhooks: %d entries of the log of %s:%d were gone before they were read", taken.lost, *place)
            self._lost[place] = self._lost.get(place, 0) + taken.lost
        try:
            made = self._keep(place, taken)
        except BaseException:
            with contextlib.suppress(SignalboxError):
                self._logs.give_back(place, taken)
            raise
        self._lost.pop(place, None)
        self._logs.finish(place, taken)
        return made

    def _keep(self, place: Place, taken: StreamPage) -> int:
        """Write all deliveries or none. Which webhooks there are is asked after the reading: one that was made before a
        message was emitted gets it."""
        found = [read_entry(*one) for one in taken.entries]
        emitted = [_make_message(entry) for entry in found if entry.kind in KINDS]
        entries = [found for found in emitted if _is_message(found)]
        if len(entries) < len(emitted):
            log.error("webhooks: %d entries of the log of %s:%d are no messages", len(emitted) - len(entries), *place)
        lost = self._lost.get(place, 0)
        if not entries and not lost:
            return 0
        webhooks, writer = list(Webhook.list_emitting()), Writer()
        rows = [row for entry in entries for row in _make_deliveries(place, entry, webhooks, writer)]
        with transaction.atomic():
            if lost:
                LogGap.objects.create(machine=place[0], partition=place[1], after=taken.before, lost=lost)
            Delivery.objects.bulk_create(rows, ignore_conflicts=True)  # a message may be read twice
        return len(rows)


def _make_message(entry: LogEntry) -> LogEntry:
    """Make the message of an entry: of a step or a change of versions it has a type of its own."""
    if entry.kind == "step":
        return replace(entry, name=STEP, data={"event": entry.name, "state": entry.state})
    if entry.kind == "version":
        about = entry.data if isinstance(entry.data, dict) else {}
        return replace(entry, name=ROLLOUT, data={"action": entry.name} | about)
    return entry


def _is_message(found: LogEntry) -> bool:
    """Tell whether a machine can have emitted it: what else somebody wrote into a log must not hold up what is behind
    it."""
    fits = len(found.name) <= MAX_TYPE and len(found.instance) <= MAX_INSTANCE_ID and found.at < MAX_NOW
    return fits and "\0" not in found.name + found.instance  # PostgreSQL takes none


def _make_deliveries(place: Place, found: LogEntry, webhooks: Sequence[Webhook], writer: Writer) -> list[Delivery]:
    wanted = [webhook for webhook in webhooks if matches_filter(webhook, place[0], found.name, found.at)]
    if not wanted:
        return []
    message, body = f"{place[0]}:{place[1]}:{found.id}", writer.body(place[0], found)
    return [
        Delivery(
            webhook=webhook, message=message, key=new_key(), type=found.name, machine=place[0],
            instance=found.instance, body=body,
        )
        for webhook in wanted
    ]  # fmt: skip


def new_key() -> str:
    """Return what a receiver knows a message by: sorts by when it was written down here."""
    return f"msg_{get_engine().new_id()}"


def prune(keep: timedelta = KEEP) -> None:
    """Take out what is old, a little at a time."""
    before = timezone.now() - keep
    for rows in (Delivery.objects.filter(made_at__lt=before), LogGap.objects.filter(at__lt=before)):
        delete_some(rows.order_by("pk"), PRUNE)
