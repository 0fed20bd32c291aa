"""The consumer group ``webhooks`` on the logs of all partitions, which all workers read side by side.

A log keeps what the group has not acknowledged, up to ten times its usual length. A row of LogCursor says that there is
a group on a log, and where it stood when that was last noted, so that one that Redis lost begins there anew.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from django.db import transaction

from machines.connections import get_throttle
from machines.engine import Engine, EngineFault
from machines.engine.messages.emitted import START, LogEnd, Place
from machines.patterns import Gone
from machines.patterns.bus import StreamPage
from machines.patterns.log_group import PAGE, LogGroup

from .models import LogCursor, LogGap

GROUP = "webhooks"
SWEEP = 30.0  # seconds between two looks for what such workers left
REFRESH = 5.0  # seconds between two looks for new machines
TURN = 1.0  # seconds; on a cluster nobody can wait on many logs, so some look, and each second only so many
LOOKERS = 2


class ConsumerGroup(LogGroup):
    """One worker's. Not for several threads."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(engine, GROUP)
        self._clock = clock
        self._known: dict[Place, str] = {}  # place -> up to which id it was read, by anybody
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
        return get_throttle().count("webhooks.look", "turn", limit=LOOKERS, per=TURN).allowed

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
