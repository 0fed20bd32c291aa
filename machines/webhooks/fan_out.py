"""Makes deliveries of emitted messages: each message exactly once for each webhook whose filter matches it.

A message is acknowledged after the transaction that made its deliveries: a worker that dies between the two has it read
once more, by another one, and there is never a second delivery of a message for a webhook.
"""

import contextlib
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from django.db import transaction
from django.utils import timezone

from machines.conf.database import DatabaseDuty, delete_some, prepare_check
from machines.connections import get_engine, get_pattern
from machines.engine import Engine, EngineFault, LookupFailed, SignalboxError
from machines.engine.limits import MAX_INSTANCE_ID
from machines.engine.messages.emitted import START, LogEnd, LogEntry, Place, read_entry
from machines.patterns import Gone, Throttle
from machines.patterns.base import MAX_NOW
from machines.patterns.bus import StreamPage
from machines.patterns.log_group import PAGE, LogGroup

from . import sender
from .message_body import Writer
from .models import Delivery, LogCursor, LogGap, Webhook

log = logging.getLogger(__name__)

GROUP = "webhooks"
SWEEP = 30.0  # seconds between two looks for what such workers left
REFRESH = 5.0  # seconds between two looks for new machines
TURN = 1.0  # seconds; on a cluster nobody can wait on many logs, so some look, and each second only so many
LOOKERS = 2
STEP = "signalbox.step"
"""The type of the messages about steps, which nobody emits. A webhook gets them that names it; ``*`` does not."""
ROLLOUT = "signalbox.rollout"
"""The type of the messages about roll-outs, pins and withdrawn versions, by the same rule."""
LOGS = 16  # of which a pass reads a page
NOTE = 30.0  # seconds between two notes of how far the logs are read; one worker makes them
KEEP = timedelta(days=30)  # deliveries and gaps, whatever became of them
PRUNE = 500  # rows a pass removes at most
KINDS = ("emit", "step", "version")  # of the entries that are messages
LOGGED = timedelta(days=7).total_seconds()  # for which steps are logged when no worker asks again
RENEW = 60.0  # seconds between two times of asking
MAX_TYPE = 200  # characters of a delivery's type: twice as long as an event may be called


_has_emitting = prepare_check(Webhook.list_emitting())


class ConsumerGroup(LogGroup):
    """One worker's. Not for several threads."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(engine, GROUP)
        self._clock = clock
        self._known: dict[Place, str] = {}  # place -> up to which id it was read, by any worker
        self._due: dict[Place, None] = {}
        self._left: set[Place] = set()
        self._refreshed = self._swept = -float("inf")

    # Where there is something to do

    def due(self, most: int, *, wait: float) -> list[Place]:
        """Return up to ``most`` logs that may have something for this worker; wait up to ``wait`` seconds for one."""
        now = self._clock()
        if now - self._refreshed >= REFRESH:
            self._refreshed = now
            self._refresh(self._emitted.places())
        if now - self._swept >= SWEEP:
            self._swept = now
            self._left.clear()
            self._due |= dict.fromkeys(self._known)
        if not self._due and (not self._emitted.spread or self._turn()):
            self._due = dict.fromkeys(self._emitted.find_new(self._known, wait=wait))
        return [self._due.popitem()[0] for _ in range(min(most, len(self._due)))]

    @property
    def more(self) -> bool:
        return bool(self._due)

    def _refresh(self, places: list[Place]) -> None:
        self._known = {place: self._known.get(place, START) for place in places if place not in self._left}
        self._due |= {place: None for place in self._known if place not in self._streams}

    @staticmethod
    def _turn() -> bool:
        return get_pattern(Throttle).count("webhooks.look", "turn", limit=LOOKERS, per=TURN).allowed

    # Reading

    def take(self, place: Place) -> StreamPage:
        """Take a page of one log, of which this worker has to say that it is finished, or give it back."""
        taken = self._take(place)
        if taken is None:
            self._begin(place)
            taken = self._take(place) or StreamPage([], START, 0)
        if len(taken.entries) == PAGE:
            self._due[place] = None
        self._known[place] = taken.last
        return taken

    def leave(self, place: Place) -> None:
        """Leave a place for a while: it is no log, something else stands in its place."""
        self._left.add(place)
        self._known.pop(place, None)
        self._streams.pop(place, None)

    def _take(self, place: Place) -> StreamPage | None:
        try:
            return self.read(place)
        except Gone:
            return None

    # The group

    def _begin(self, place: Place) -> None:
        """Begin a group on a log that has none: where it stood, or with the oldest entry."""
        end = self._emitted.ends([place])[place]
        if not end.added:
            return  # there is no log yet
        cursor, made = LogCursor.objects.get_or_create(machine=place[0], partition=place[1])
        if not made and _is_another(cursor, end):
            _log_replacement(cursor)
            cursor.read, cursor.position = START, 0
        known = cursor.read != START
        self.stream(place).begin(GROUP, cursor.read if known else "0", cursor.position if known else None)

    def note(self) -> None:
        """Write down how far the group is, where nothing is under way."""
        for cursor in LogCursor.objects.all():
            stands = self.stream((cursor.machine, cursor.partition)).stands(GROUP)
            if stands is not None and stands != (cursor.read, cursor.position):
                LogCursor.objects.filter(pk=cursor.pk).update(read=stands[0], position=stands[1])

    def drop(self) -> None:
        """Drop the group where no webhook is active: no logs are to grow."""
        for cursor in LogCursor.objects.all():
            self._forget(cursor)
            cursor.delete()
            self._forget(cursor)  # one made anew between the two has lost its row: nobody else would take it away
        self._known, self._due, self._streams = {}, {}, {}
        self._refreshed = self._swept = -float("inf")

    def _forget(self, cursor: LogCursor) -> None:
        with contextlib.suppress(EngineFault):  # something else stands in its place
            self.stream((cursor.machine, cursor.partition)).forget_group(GROUP)


def align(engine: Engine) -> None:
    """Put the group at the end of every log: what nobody wanted is not missing."""
    logs = ConsumerGroup(engine)
    for (machine, partition), end in engine.emitted_logs().ends().items():
        LogCursor.objects.update_or_create(
            machine=machine, partition=partition, defaults={"read": end.last, "position": end.added}
        )
        logs.stream((machine, partition)).begin(GROUP, end.last if end.added else "0", end.added, anew=True)


def _is_another(cursor: LogCursor, end: LogEnd) -> bool:
    """Tell whether this log is another one than the one the cursor stood in."""
    return end.added < cursor.position or _order(end.last) < _order(cursor.read)


def _log_replacement(cursor: LogCursor) -> None:
    """Log a replaced log, by one of those who find it."""
    with transaction.atomic():
        held = LogCursor.objects.filter(pk=cursor.pk, read=cursor.read, position=cursor.position)
        if held.update(read=START, position=0):
            LogGap.objects.create(machine=cursor.machine, partition=cursor.partition, after=cursor.read, lost=0)


def _order(id: str) -> tuple[int, int]:
    ms, _, number = id.partition("-")
    return int(ms), int(number or 0)


def wants_steps(webhook: Webhook) -> bool:
    """Tell whether a webhook gets a message for each step of its machines."""
    return STEP in webhook.types


def matches_filter(webhook: Webhook, machine: str, type: str, at: int) -> bool:
    """Tell whether a message that was emitted ``at`` (ms by Redis' clock) is for it."""
    if at < webhook.since or (webhook.machines and machine not in webhook.machines):
        return False
    if type in (STEP, ROLLOUT):
        return type in webhook.types
    return _compile_pattern(tuple(webhook.types)).fullmatch(type) is not None


@lru_cache(maxsize=256)
def _compile_pattern(types: Sequence[str]) -> re.Pattern[str]:
    """Compile a pattern. ``*`` stands for any characters, none too; everything else for itself."""
    return re.compile("|".join(".*".join(map(re.escape, type.split("*"))) for type in types) or r"(?!)", re.DOTALL)


class FanOut(DatabaseDuty):
    """Every worker has one: they share the logs as one group of readers, and a message is made a delivery before it
    counts as read. ``wait``: seconds a pass that finds nothing waits for something."""

    MESSAGE = "webhooks wait for the database: %s"
    IDLE = 5.0  # seconds between two looks for a webhook where there is none
    AWAY = 1.0  # seconds between two tries where the database does not answer
    REST = 0.2  # seconds after a pass that found something: what comes meanwhile shares the next transaction
    LISTEN = 0.02  # seconds after any other: what waits for messages is the pass itself

    def __init__(self, engine: Engine, *, wait: float = 1.0) -> None:
        self._engine = engine
        self._logs = ConsumerGroup(engine)
        self._wait = wait
        self._idle, self._found = True, False
        self._lost: dict[Place, int] = {}  # in the log, not yet recorded here
        self._noted = time.monotonic()
        self._asked = -float("inf")

    def pause(self) -> float:
        if self.is_away:
            return self.AWAY
        if self._idle:
            return self.IDLE
        return self.REST if self._found else self.LISTEN

    def look(self) -> bool:
        """Make one pass; tell whether there is more."""
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
            if get_pattern(Throttle).count("webhooks.note", "turn", limit=1, per=NOTE).allowed:
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
    """Tell whether a machine can have emitted it: what another program wrote into a log must not hold up what is behind
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
