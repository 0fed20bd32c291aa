"""Measures: once a minute a worker reads the engine's cumulative counters, and writes to SQL what has happened since
the last reading, in one transaction with the new reading: whichever worker samples, whenever and however often, each
count is written once.

The order is what makes that so: the time of the last sampling is looked up *before* the counters are read, and nothing
is written unless it is still the same. A reading that is older than the last one can therefore never come after it. A
worker that dies before its transaction ends leaves nothing, and the next one covers its time.

The counters of a machine are one nested document: ``{"edges": {...}, "refused": {...}, "queues": {queue: {"enqueued":
n, ..., "waits": {...}}}}``. Its leaves are whole numbers, its keys texts, since it is kept as JSON.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q

from machines.conf.database import DatabaseDuty, delete_some
from machines.engine import Engine, Live, QueueStats, Survey

from .models import CounterReading, Measurement, SamplingTurn

Period = Measurement.Period
Counters = dict[str, Any]

GAP = 150_000
"""ms between two readings from which on nobody can say in which minute something happened."""

MINUTES_KEPT = 2 * 86_400  # s
HOURS_KEPT = 400 * 86_400  # s
AT_ONCE = 1_000  # rows one run removes at most
BATCH = 200  # rows of one statement
KEY = ("machine", "period", "at")
SUMS = ("transitions", "refused", "enqueued", "completed", "failed", "died")


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one machine did from ``begin`` to ``end``, ms: between two readings."""

    machine: str
    begin: int
    end: int
    numbers: Counters
    instances: int

    def places(self) -> list[tuple[Period, int]]:
        """Return (period, s) of the rows it belongs to: the minute its middle lies in and the hour of that, or a gap of
        its own and its hour, if it lies in one."""
        span = self.end - self.begin
        if span <= GAP:
            minute = (self.end - span // 2) // 60_000 * 60
            return [(Period.MINUTE, minute), (Period.HOUR, minute // 3600 * 3600)]
        is_inside = self.begin // 3_600_000 == (self.end - 1) // 3_600_000
        hour = [(Period.HOUR, self.begin // 3_600_000 * 3600)] if is_inside else []
        return [(Period.GAP, self.begin // 1000), *hour]


def turn() -> SamplingTurn:
    """Take the turn, before the counters are read."""
    return SamplingTurn.objects.get_or_create(pk=1)[0]


def readings(machines: Iterable[str]) -> dict[str, CounterReading]:
    """Return the last ones of these machines, of those that have any."""
    return {row.machine: row for row in CounterReading.objects.filter(machine__in=list(machines))}


def record(survey: Survey, seen: SamplingTurn, *, now: int) -> bool:
    """Write what happened since the last readings. False, and nothing is written, where another worker sampled since
    ``seen``.

    ``now``: ms by the clock of Redis. A machine that is met for the first time only leaves its reading: when its counts
    came about nobody knows. So does one whose counters went back. One of which a partition did not answer keeps the
    reading it has: that partition's counters would be counted anew with its next answer.
    """
    with transaction.atomic():
        same = SamplingTurn.objects.filter(pk=1, number=seen.number)
        if now == seen.at or not same.update(number=seen.number + 1, at=now, began=seen.began or now):
            return False
        lives = {name: live for name, live in survey.lives.items() if not live.missing}
        held, fresh, stretches = readings(lives), [], []
        for name, live in lives.items():
            reading = CounterReading(machine=name, at=now, counters=counters_of(live, survey.queues.get(name, {})))
            fresh.append(reading)
            if name in held and (stretch := _measure(held[name], reading, live)) is not None:
                stretches.append(stretch)
        _add(stretches)
        CounterReading.objects.bulk_create(
            fresh, batch_size=BATCH, update_conflicts=True, unique_fields=["machine"], update_fields=["at", "counters"]
        )
    return True


def _measure(before: CounterReading, after: CounterReading, live: Live) -> Stretch | None:
    if after.at <= before.at:  # a clock that was set back
        return None
    try:
        numbers = difference(after.counters, before.counters)
    except WentBack:
        return None
    return Stretch(live.machine, before.at, after.at, numbers, live.total)


def _add(stretches: list[Stretch]) -> None:
    """Add each to the rows it belongs to."""
    wanted = [(stretch, (stretch.machine, *place)) for stretch in stretches for place in stretch.places()]
    machines, periods, times = ({key[part] for _, key in wanted} for part in range(3))
    found = Measurement.objects.filter(machine__in=machines, period__in=periods, at__in=times)
    rows = {(row.machine, row.period, row.at): row for row in found}
    changed = []
    for stretch, key in wanted:
        row = rows.get(key) or Measurement(**dict(zip(KEY, key, strict=True)), numbers={})
        row.numbers = add_counters(row.numbers, stretch.numbers)
        row.covered += stretch.end - stretch.begin
        row.instances = stretch.instances
        for name, count in sums(stretch.numbers).items():
            setattr(row, name, getattr(row, name) + count)
        changed.append(row)
    fields: list[str] = ["covered", *SUMS, "instances", "numbers"]
    Measurement.objects.bulk_create(
        changed, batch_size=BATCH, update_conflicts=True, unique_fields=list(KEY), update_fields=fields
    )


def prune(now: int, keep: int = HOURS_KEPT) -> int:
    """Remove what is older than it is kept, some of it at a time; how many rows. ``now``: ms; ``keep``: seconds for
    which hours are kept, and minutes at most."""
    old = Q(period=Period.MINUTE, at__lt=now // 1000 - min(MINUTES_KEPT, keep))
    old |= Q(period__in=(Period.HOUR, Period.GAP), at__lt=now // 1000 - keep)
    delete_some(CounterReading.objects.filter(at__lt=now - keep * 1000), AT_ONCE)
    return delete_some(Measurement.objects.filter(old).order_by("at"), AT_ONCE)


OF_QUEUES = ("enqueued", "taken", "completed", "failed", "lost", "died")
HISTOGRAMS = ("waits", "runs")
DERIVED = frozenset({"enqueued"})
"""Worked out from where jobs are: it may step back by itself, which says nothing about the server."""


class WentBack(Exception):
    """A counter that only grows is smaller than it was: another server, an older file, or one that began anew."""


def counters_of(live: Live, queues: Mapping[str, QueueStats]) -> Counters:
    """Return all of one machine, without what is 0."""
    return _keep_known(
        {
            "edges": dict(live.flow),
            "refused": dict(live.refused),
            "queues": {name: _of_queue(stats) for name, stats in queues.items()},
        }
    )


def _of_queue(stats: QueueStats) -> Counters:
    counted = {name: getattr(stats, name) for name in OF_QUEUES}
    magnitudes = {name: {str(size): count for size, count in getattr(stats, name).items()} for name in HISTOGRAMS}
    return counted | magnitudes


def _keep_known(document: Counters) -> Counters:
    found = {name: _keep_known(value) if isinstance(value, dict) else value for name, value in document.items()}
    return {name: value for name, value in found.items() if value}


def difference(new: Counters, old: Counters) -> Counters:
    """Return what was added since, without what was not. Raises WentBack."""
    found: Counters = {}
    for name in new.keys() | old.keys():
        after, before = new.get(name), old.get(name)
        if isinstance(after or before, dict):
            added: Any = difference(after or {}, before or {})
        else:
            added = (after or 0) - (before or 0)
            if added < 0 and name not in DERIVED:
                raise WentBack(name)
        if added and (isinstance(added, dict) or added > 0):
            found[name] = added
    return found


def add_counters(a: Counters, b: Counters) -> Counters:
    """Return both added up."""
    found = dict(a)
    for name, value in b.items():
        held = found.get(name)
        if isinstance(value, dict):
            found[name] = add_counters(held or {}, value)
        else:
            found[name] = (held or 0) + value
    return found


def sums(numbers: Counters) -> dict[str, int]:
    """Return the columns of a ``Measurement``."""
    queues = numbers.get("queues", {}).values()

    def of(*names: str) -> int:
        return sum(queue.get(name, 0) for queue in queues for name in names)

    return {
        "transitions": sum(numbers.get("edges", {}).values()),
        "refused": sum(numbers.get("refused", {}).values()),
        "enqueued": of("enqueued"),
        "completed": of("completed"),
        "failed": of("failed", "lost"),
        "died": of("died"),
    }


MINUTE = 60_000  # ms
SPREAD = (0.5, 3.0)  # s after the full minute: of many workers the first measures, the others find it done
EARLY = 180_000  # ms after the first sampling, in which it is done more often: to see something soon
EARLY_EVERY = 10_000  # ms


class Sampler(DatabaseDuty):
    """Every worker checks each minute whether another has measured already. Where the database is away, what happens is
    measured later, as one gap."""

    MESSAGE = "statistics are not measured: %s"

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._is_early = True

    def look(self) -> bool:
        """Make one pass. There is never more to do at once: False."""
        seen, now = turn(), int(self._clock() * 1000)
        self._is_early = not seen.began or now - seen.began < EARLY
        if self._is_due(seen.at, now):
            survey = self._engine.survey(trust=True)
            record(survey, seen, now=survey.now or now)
        return False

    def pause(self) -> float:
        """Return seconds: to a little after the next full minute."""
        if self._is_early and not self.is_away:
            return EARLY_EVERY / 1000
        to_minute = 60 - self._clock() % 60
        return to_minute + random.uniform(*SPREAD)  # noqa: S311  spreading load, not a secret

    def _is_due(self, last: int, now: int) -> bool:
        if self._is_early:
            return abs(now - last) >= EARLY_EVERY * 0.9
        return now // MINUTE != last // MINUTE
