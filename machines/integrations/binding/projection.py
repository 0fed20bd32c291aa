"""Writes what nobody has written: a worker reads the logs of bound machines and applies each step to its row.

Each field has a consumer group of its own on the logs of its machine's partitions, ``bind:shop.Order.status``. One
worker at a time reads them, an entry is acknowledged after its columns are written, so one whose worker died is read
again; the revision guards against applying it twice. Steps are in the log from the moment the field is first served;
what happened before, and what a log has lost, is found by comparing: the machine is reconciled, page by page, beside
the reading.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from machines import signals
from machines.conf.database import DatabaseDuty
from machines.connections import get_pattern
from machines.engine import Engine, EngineFault, LookupFailed, SignalboxError
from machines.engine.messages.emitted import START, LogEntry, Place, read_entry
from machines.patterns import Gone, Locks, Taken
from machines.patterns.bus import StreamPage
from machines.patterns.locks import HeldLock
from machines.patterns.log_group import PAGE, LogGroup

from . import registry, state_columns
from .reconcile import Reconcile, mend

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

LOGGED = timedelta(days=7).total_seconds()  # for which steps are logged when nobody asks again
RENEW = 3600.0  # seconds between two times of asking
REFRESH = 5.0  # seconds between two looks for machines that were published or grew
LEASE = 10.0  # seconds for which one worker reads the logs of a field


class FieldReader(LogGroup):
    """Reads the logs of one field's machine."""

    def __init__(self, engine: Engine, field: MachineField, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(engine, f"bind:{field.label}")
        self._field = field
        self._clock = clock
        self._known: dict[Place, str] = {}
        self._refreshed = self._renewed = -float("inf")
        self._reconcile: Iterator[object] | None = None
        self._interrupted = False  # the latest comparison did not come to its end

    def look(self, *, wait: float) -> bool:
        """Read a page of each log that has one; return whether there is more to do."""
        self._refresh()
        if self._reconcile is not None:
            wait = 0.0
            try:
                if next(self._reconcile, None) is None:
                    self._reconcile = None
            except Exception:
                self._reconcile, self._interrupted = None, True
                raise
        found = self._emitted.find_new(self._known, wait=wait) if self._known else []
        more = [self._read(place) for place in found]
        return any(more) or self._reconcile is not None

    def forget(self) -> None:
        """Leave it to another worker: begin anew afterwards."""
        self._refreshed = self._renewed = -float("inf")
        self._known.clear()

    def _refresh(self) -> None:
        """Have steps logged, in new partitions too, and a group that reads them."""
        now = self._clock()
        if now - self._refreshed < REFRESH:
            return
        self._refreshed = now
        machine = self._field.machine
        try:
            places = {(machine, n) for n in range(self._engine.count_partitions(machine))}
        except LookupFailed:  # not published yet
            self._known.clear()
            return
        if now - self._renewed >= RENEW or places != set(self._known):
            fresh = set(self._emitted.log_steps(machine, seconds=LOGGED))
            self._renewed = now
            begun = {place for place in places if self.stream(place).begin(self._group, "$")}
            self._known = {place: self._known.get(place, START) for place in sorted(places)}
            if fresh | begun:
                self._compare("its steps are logged from now on")
        if self._interrupted:
            self._compare("the latest comparison was interrupted")

    def _read(self, place: Place) -> bool:
        """Apply a page of one log; return whether it was full."""
        try:
            taken = self.read(place)
        except Gone:  # Redis lost it, or was emptied
            self._known.pop(place, None)
            self._refreshed = -float("inf")
            return True
        except EngineFault as error:
            log.error("the log of %s:%d cannot be read: %s", *place, error)
            self._known.pop(place, None)
            return False
        if taken.lost:
            log.warning("%d steps of %s:%d were gone before they were read", taken.lost, *place)
            self._compare("steps were lost")
        try:
            self._apply(taken)
        except BaseException:
            with contextlib.suppress(SignalboxError):
                self.give_back(place, taken)
            raise
        self.finish(place, taken)
        self._known[place] = taken.last
        return len(taken.entries) == PAGE

    def _apply(self, taken: StreamPage) -> None:
        entries = [entry for entry in (read_entry(*one) for one in taken.entries) if entry.kind == "step"]
        if not entries:
            return
        for using in self._field.databases():
            written = apply_steps(self._engine, self._field, entries, using)
            if signals.stepped.has_listeners(self._field.model):
                self._notify(entries, written, using)

    def _notify(self, entries: Iterable[LogEntry], there: set[str], using: str) -> None:
        for entry in entries:
            if entry.instance in there:
                signals.notify(
                    signals.stepped, self._field.model, field=self._field, machine=self._field.machine,
                    instance=entry.instance, event=entry.name, state=entry.state, revision=entry.revision,
                    at=entry.at, using=using,
                )  # fmt: skip

    def _compare(self, why: str) -> None:
        log.info("%s: comparing all rows with all instances, since %s", self._field.label, why)
        self._interrupted = False
        self._reconcile = iter(Reconcile(self._engine, self._field).pages())


def apply_steps(engine: Engine, field: MachineField, entries: Iterable[LogEntry], using: str) -> set[str]:
    """Write the last of these steps of each row; return the ids that have a row.

    Where a row is at a later revision already, or says something else at the same one, the instance is asked: it may
    have been made anew under its id, or Redis may have gone back to an earlier moment.
    """
    latest = {entry.instance: entry for entry in entries}
    found = state_columns.read(field, latest, using)
    doubtful = {}
    for id, seen in found.items():
        entry = latest[id]
        state = state_columns.column_text(field, entry.state)
        if seen.revision < entry.revision:
            state_columns.advance(field, id, entry.state, entry.revision, using)
        elif seen.revision > entry.revision or seen.state != state:
            doubtful[id] = seen
    if doubtful:
        mend(engine, field, doubtful, using)
    return set(found)


class Projection(DatabaseDuty):
    """A duty of every worker; the fields are shared out among them, each to one worker at a time."""

    MESSAGE = "states of rows wait for the database: %s"
    NONE = 30.0  # seconds between two looks where the project has no machine field
    AWAY = 1.0  # seconds between two tries where the database does not answer
    REST = 0.05  # seconds between two passes, which wait for entries themselves
    LOOK = 0.5  # the same on a cluster, where nobody can wait on many logs, and for who reads no log
    TRY = 2.0  # seconds between two tries to take over a field from another worker

    def __init__(self, engine: Engine, *, wait: float = 1.0) -> None:
        self._engine = engine
        self._wait = wait
        self._readers = {field.label: FieldReader(engine, field) for field in registry.list_fields()}
        self._locks: dict[str, HeldLock] = {}
        self._next: dict[str, float] = {}  # when to try for a field again

    def finish(self) -> None:
        """Write what nobody has written yet, and leave the fields to other workers."""
        try:
            while self.run_once():
                pass
        finally:
            for held in self._locks.values():
                held.release()

    def pause(self) -> float:
        if not self._readers:
            return self.NONE
        if self.is_away:
            return self.AWAY
        return self.LOOK if not self._locks or self._engine.emitted_logs().spread else self.REST

    def look(self) -> bool:
        """Make one pass over all fields; tell whether there is more to do."""
        held = [label for label in self._readers if self._hold(label)]
        more = [self._look(label, self._wait / len(held)) for label in held]
        return any(more)

    def _look(self, label: str, wait: float) -> bool:
        try:
            return self._readers[label].look(wait=wait)
        except EngineFault as error:  # something else stands in the place of a log; other fields go on
            log.error("%s: its machine's log cannot be read: %s", label, error)
            return False

    def _hold(self, label: str) -> bool:
        """Tell whether this worker has the field, and keep it."""
        held = self._locks.get(label)
        try:
            if held is not None and not held.lost:
                if held.left < LEASE / 2:
                    held.renew()
                return True
            self._locks.pop(label, None)
            if time.monotonic() < self._next.get(label, 0.0):
                return False
            self._next[label] = time.monotonic() + self.TRY
            self._readers[label].forget()
            self._locks[label] = get_pattern(Locks).lock(f"bind.{label}", ttl=LEASE).acquire()
        except SignalboxError as error:
            self._locks.pop(label, None)
            if not isinstance(error, Taken):
                raise
            return False
        return True
