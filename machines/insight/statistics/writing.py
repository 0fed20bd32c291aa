"""Writes batches of the write buffer to SQL: minutes, hours and gaps, each interval of a machine once. The background
duty that does so may run in any number of workers at the same time.

What has been written of a machine is kept as stretches of its time (``MeasuredStretch``), in the same transaction. A
batch that comes a second time lies within them and is left out, and so does whatever a Redis that came back from an
older file measures anew: between a reading it still knows and the next one lies time that has been written.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db import DataError, Error, IntegrityError, connection, transaction
from django.db.models import F, Q

from machines.conf.database import DatabaseDuty, delete_some
from machines.connections import is_spread
from machines.engine.errors import EngineFault, EngineUnavailable, SignalboxError
from machines.engine.limits import check_machine_name
from machines.patterns import Batch, Entry, Lost, Stats, WriteBuffer
from machines.patterns.base import MAX_EXACT, MAX_NOW
from machines.people import last_seen

from . import recording
from .models import MeasuredStretch, Measurement, SamplingTurn
from .recording import COVERED, INSTANCES, SAMPLED, Counters, add_counters, build, sums

log = logging.getLogger(__name__)

Period = Measurement.Period

MINUTES_KEPT = 2 * 86_400  # s
HOURS_KEPT = 400 * 86_400  # s
AT_ONCE = 1_000  # rows one run removes at most
BATCH = 200  # rows of one statement

KEY = ("machine", "period", "at")
PERIODS = frozenset(Period.values)
TIMES = ("at", "began")  # of a sampling
SUMS = ("transitions", "refused", "enqueued", "completed", "failed", "died")


@dataclass(frozen=True, slots=True)
class Part:
    """What one entry of the buffer says of a machine. ``stretches``: (begin, end) of each sampling, ms."""

    machine: str
    period: int
    at: int
    stretches: list[tuple[int, int]]
    covered: int
    instances: int
    numbers: Counters

    @classmethod
    def of(cls, entry: Entry) -> Part:
        machine, period, at = entry.entity.split(" ")
        stretches = sorted((int(begin), end) for begin, end in entry.fields.items() if begin != INSTANCES)
        counted = {name: count for name, count in entry.counters.items() if name != COVERED}
        covered, instances = entry.counters[COVERED], entry.fields[INSTANCES]
        if not stretches or not all(isinstance(end, int) and 0 <= begin < end < MAX_NOW for begin, end in stretches):
            raise ValueError(f"no stretches of time: {entry.fields!r:.80}")
        known = check_machine_name(machine) is None and int(period) in PERIODS and 0 <= int(at) < MAX_NOW
        numbers = (covered, int(instances), sum(counted.values()), *counted.values())
        if not known or not all(0 <= number < MAX_EXACT for number in numbers):
            raise ValueError(f"no machine's minute: {entry.entity!r:.80}")
        return cls(machine, int(period), int(at), stretches, covered, int(instances), build(counted))

    @property
    def end(self) -> int:
        return self.stretches[-1][1]

    def places(self) -> list[tuple[int, int]]:
        """Return (period, s) of the rows it belongs to. A gap belongs to its hour, if it lies in one."""
        begin = self.stretches[0][0]
        if self.period == Period.MINUTE:
            return [(Period.MINUTE, self.at), (Period.HOUR, self.at // 3600 * 3600)]
        inside = begin // 3_600_000 == (self.end - 1) // 3_600_000
        return [(Period.GAP, self.at)] + ([(Period.HOUR, begin // 3_600_000 * 3600)] if inside else [])


class WrittenTime:
    """The time of some machines that has been written."""

    def __init__(self, parts: Iterable[Part]) -> None:
        parts = list(parts)
        machines, first = {part.machine for part in parts}, min((part.stretches[0][0] for part in parts), default=0)
        self._rows = list(MeasuredStretch.objects.filter(machine__in=machines, end__gte=first))
        self._held: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row in self._rows:
            self._held[row.machine].append((row.begin, row.end))

    def last(self, machine: str) -> int:
        return max((end for _, end in self._held[machine]), default=0)

    def take(self, part: Part) -> bool:
        """Add its time. False where some of that has been written before."""
        held = self._held[part.machine]
        if any(begin < b and a < end for begin, end in part.stretches for a, b in held):
            return False
        self._held[part.machine] = _merge([*held, *part.stretches])
        return True

    def save(self) -> None:
        kept = {(row.machine, row.begin): row for row in self._rows}
        later, fresh = defaultdict(list), []
        for machine, held in self._held.items():
            for begin, end in held:
                row = kept.pop((machine, begin), None)
                if row is None:
                    fresh.append(MeasuredStretch(machine=machine, begin=begin, end=end))
                elif row.end != end:
                    later[end].append(row.pk)
        for end, pks in later.items():  # few: machines that are sampled together end together
            MeasuredStretch.objects.filter(pk__in=pks).update(end=end)
        MeasuredStretch.objects.filter(pk__in=[row.pk for row in kept.values()]).delete()
        MeasuredStretch.objects.bulk_create(fresh, batch_size=BATCH)


def write(batch: Batch) -> None:
    """Write all of it or nothing; what has been written before is left out. A concurrent writer waits."""
    SamplingTurn.objects.get_or_create(pk=1)
    with transaction.atomic():
        SamplingTurn.objects.filter(pk=1).update(number=F("number") + 1)  # first: from here on nobody else does
        parts = _parts(entry for entry in batch.entries if entry.entity != SAMPLED)
        if parts:
            _write_parts(parts)
        for entry in batch.entries:
            if entry.entity == SAMPLED:
                _write_sample(entry.fields)


def prune(now: int, keep: int = HOURS_KEPT) -> int:
    """Remove what is older than it is kept, some of it at a time; how many rows. ``now``: ms; ``keep``: seconds for
    which hours are kept, and minutes at most."""
    old = Q(period=Period.MINUTE, at__lt=now // 1000 - min(MINUTES_KEPT, keep))
    old |= Q(period__in=(Period.HOUR, Period.GAP), at__lt=now // 1000 - keep)
    delete_some(MeasuredStretch.objects.filter(end__lt=now - keep * 1000), AT_ONCE)
    return delete_some(Measurement.objects.filter(old).order_by("at"), AT_ONCE)


def _write_parts(parts: list[Part]) -> None:
    written = WrittenTime(parts)
    last = {part.machine: written.last(part.machine) for part in parts}
    taken = [part for part in parts if written.take(part)]
    if len(taken) < len(parts):
        log.warning(
            "statistics: %d of %d minutes were written before and are left out", len(parts) - len(taken), len(parts)
        )
    busy = {part.machine for part in taken if part.numbers or part.end < last[part.machine]}
    _add([part for part in taken if part.machine in busy], last)
    _add_idle([part for part in taken if part.machine not in busy])
    written.save()


def _parts(entries: Iterable[Entry]) -> list[Part]:
    """Return the oldest first, without what this program has not put there."""
    found = []
    for entry in entries:
        try:
            found.append(Part.of(entry))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            log.error("statistics: the entry %s says nothing of a machine and is left out: %r", entry.id, error)
    return sorted(found, key=lambda part: part.stretches)


def _write_sample(fields: dict[str, Any]) -> None:
    """Write a sample, and never an older one: batches may come in another order."""
    row = SamplingTurn.objects.get(pk=1)
    at, began = (value if isinstance(value, int) and 0 <= value < MAX_NOW else 0 for value in map(fields.get, TIMES))
    row.at, row.began = max(row.at, at), row.began or began
    row.save(update_fields=["at", "began"])


def _add(parts: list[Part], last: dict[str, int]) -> None:
    """Add each to the rows it belongs to. ``last``: to when each machine was written before, ms: what is older than
    that says nothing of how many instances there are."""
    wanted = [(part, period, at) for part in parts for period, at in part.places()]
    rows = _there({(part.machine, period, at) for part, period, at in wanted})
    for part, period, at in wanted:
        key = (part.machine, int(period), at)
        is_new = key not in rows
        row = rows.setdefault(key, Measurement(machine=part.machine, period=period, at=at, numbers={}))
        row.numbers = add_counters(row.numbers, part.numbers)
        row.covered += part.covered
        if is_new or part.end >= last[part.machine]:
            row.instances = part.instances
        for name, count in sums(part.numbers).items():
            setattr(row, name, getattr(row, name) + count)
    fields: list[str] = ["covered", *SUMS, "instances", "numbers"]
    Measurement.objects.bulk_create(
        rows.values(), batch_size=BATCH, update_conflicts=True, unique_fields=list(KEY), update_fields=fields
    )


def _add_idle(parts: list[Part]) -> None:
    """Add parts in which nothing happened, of many machines each minute: without reading the rows they belong to.
    All parts of a machine are given, the newest last."""
    if not parts:
        return
    names = ("machine", "period", "at", "covered", "instances", "numbers", *SUMS)
    table, columns = Measurement._meta.db_table, ", ".join(names)
    insert = f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(names))})"
    added = f"covered = {table}.covered + excluded.covered, instances = excluded.instances"
    with connection.cursor() as cursor:
        cursor.executemany(
            f"{insert} ON CONFLICT (machine, period, at) DO UPDATE SET {added}",
            [
                (part.machine, int(period), at, part.covered, part.instances, "{}", *[0] * len(SUMS))
                for part in parts
                for period, at in part.places()
            ],
        )


def _there(keys: set[tuple[str, int, int]]) -> dict[tuple[str, int, int], Measurement]:
    machines, periods, times = ({key[part] for key in keys} for part in range(3))
    found = Measurement.objects.filter(machine__in=machines, period__in=periods, at__in=times)
    rows = {(row.machine, row.period, row.at): row for row in found}
    return {key: row for key, row in rows.items() if key in keys}


def _merge(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those that touch as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(stretches):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


LIMIT = 500  # entries of one transaction
LEASE = 60.0  # s: far longer than a transaction takes

Make = Callable[[], WriteBuffer]

BUFFERS: Mapping[str, Make] = MappingProxyType({"statistics": recording.buffer, "last seen": last_seen.buffer})
"""What waits -> the buffer it waits in."""


def make_buffer_flushes() -> dict[str, BufferFlush]:
    """Return one duty for each buffer."""
    return {
        "statistics": BufferFlush(recording.buffer, write, message="statistics wait for the database: %s"),
        "last seen": BufferFlush(
            last_seen.buffer,
            last_seen.write,
            gather=last_seen.GATHER,
            message="who was last seen waits for the database: %s",
        ),
    }


def waiting() -> dict[str, Stats]:
    """Return what is not written yet, by what it is; without a buffer that cannot be read, or whose shard of a cluster
    does not answer. Raises EngineUnavailable."""
    found = {}
    for name, make in BUFFERS.items():
        try:
            found[name] = make().stats()
        except EngineUnavailable as error:
            if not is_spread():
                raise
            log.warning("the buffer of %s does not answer: %s", name, error)
        except EngineFault as error:
            log.warning("the buffer of %s cannot be read: %s", name, error)
    return found


class BufferFlush(DatabaseDuty):
    """``make``: gives the buffer; ``write``: writes a batch in one transaction, and one that it has
    written before not again. ``gather``: seconds that an entry waits for more to come.

    A database that is away costs a line in the log and nothing else: what was claimed goes back and waits.
    """

    def __init__(self, make: Make, write: Callable[[Batch], object], *, message: str, gather: float = 0.0) -> None:
        self._make = make
        self._write = write
        self._gather = gather
        self.MESSAGE = message

    def look(self) -> bool:
        """Write one batch. Tell whether there may be more."""
        buffer = self._make()
        batch = buffer.claim(limit=LIMIT, lease=LEASE, gather=self._gather)
        if batch is None:
            return False
        try:
            self._write(batch)
        except Error as error:
            if not isinstance(error, (DataError, IntegrityError)):  # not for what is in it: the database is away
                _give_back(buffer, batch)
            raise
        try:
            buffer.settle(batch)
        except Lost as error:
            log.info("%s: it took longer than its lease, and is written once all the same", error)
        return True


def _give_back(buffer: WriteBuffer, batch: Batch) -> None:
    try:
        buffer.give_back(batch)
    except SignalboxError as error:
        log.debug("a batch comes back when its lease ends: %s", error)
