"""Writes what has happened since the last reading, in one transaction with the new reading: whoever samples, whenever
and however often, each count is written once.

The order is what makes that so: the turn is looked up *before* the counters are read, and the transaction takes it
only if it is still the same. A reading that is older than the last one written can therefore never be written after it.
One that dies before its commit leaves nothing, and the next one covers its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q

from machines.engine import Survey
from machines.models import CounterReading, Measurement, SamplingTurn
from machines.statistics.counters import Counters, WentBack, counters_of, difference, sums, together

Period = Measurement.Period

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
    """One machine's part of one sampling: what happened from ``begin`` to ``end``, ms."""

    machine: str
    begin: int
    end: int
    numbers: Counters
    instances: int

    @property
    def span(self) -> int:
        return max(0, self.end - self.begin)

    def places(self) -> list[tuple[int, int]]:
        """(period, s) of the rows it belongs to. A gap belongs to its hour, if it lies in one."""
        middle = self.end - self.span // 2
        minute, hour = (middle // 60_000 * 60, middle // 3_600_000 * 3600)
        if self.span <= GAP:
            return [(Period.MINUTE, minute), (Period.HOUR, hour)]
        inside = self.begin // 3_600_000 == (self.end - 1) // 3_600_000
        return [(Period.GAP, self.begin // 1000)] + ([(Period.HOUR, hour)] if inside else [])


def turn() -> SamplingTurn:
    """Whose turn it is, to be asked for before the counters are read."""
    return SamplingTurn.objects.get_or_create(pk=1)[0]


def record(survey: Survey, seen: SamplingTurn, *, now: int) -> bool:
    """Write the differences. False, and nothing is written, where somebody else sampled since ``seen``.

    ``now``: ms by the clock of Redis. A machine that is met for the first time only leaves its reading: when its counts
    came about nobody knows. So does one whose counters went back.
    """
    with transaction.atomic():
        mine = SamplingTurn.objects.filter(pk=seen.pk, number=seen.number)
        resumed = seen.resumed if seen.began and now - seen.at <= GAP else now
        if not mine.update(number=seen.number + 1, at=now, began=seen.began or now, resumed=resumed):
            return False
        readings = {each.machine: each for each in CounterReading.objects.filter(machine__in=list(survey.lives))}
        fresh = [_reading(name, survey) for name in sorted(survey.lives)]
        _add(stretch for reading in fresh if (stretch := _stretch(reading, readings.get(reading.machine), survey)))
        CounterReading.objects.bulk_create(
            fresh, batch_size=BATCH, update_conflicts=True, unique_fields=["machine"], update_fields=["at", "counters"]
        )
    return True


def prune(now: int) -> int:
    """Removes what is older than it is kept, some of it at a time; how many rows."""
    old = Q(period=Period.MINUTE, at__lt=now // 1000 - MINUTES_KEPT)
    old |= Q(period__in=(Period.HOUR, Period.GAP), at__lt=now // 1000 - HOURS_KEPT)
    found = list(Measurement.objects.filter(old).order_by("at").values_list("pk", flat=True)[:AT_ONCE])
    return Measurement.objects.filter(pk__in=found).delete()[0] if found else 0


def _reading(name: str, survey: Survey) -> CounterReading:
    live = survey.lives[name]
    return CounterReading(machine=name, at=live.now, counters=counters_of(live, survey.queues.get(name, {})))


def _stretch(reading: CounterReading, before: CounterReading | None, survey: Survey) -> Stretch | None:
    if before is None:
        return None
    try:
        numbers = difference(reading.counters, before.counters)
    except WentBack:
        return None
    return Stretch(reading.machine, before.at, reading.at, numbers, survey.lives[reading.machine].total)


def _add(stretches: Iterable[Stretch]) -> None:
    """Adds each stretch to the rows it belongs to; the rows of this turn are nobody else's to write."""
    wanted = [(stretch, period, at) for stretch in stretches for period, at in stretch.places()]
    rows = _there({(stretch.machine, period, at) for stretch, period, at in wanted})
    for stretch, period, at in wanted:
        key = (stretch.machine, int(period), at)
        row = rows.setdefault(key, Measurement(machine=stretch.machine, period=period, at=at, numbers={}))
        row.numbers = together(row.numbers, stretch.numbers)
        row.covered += stretch.span
        row.instances = stretch.instances
        for name, count in sums(stretch.numbers).items():
            setattr(row, name, getattr(row, name) + count)
    fields: list[str] = ["covered", *SUMS, "instances", "numbers"]
    Measurement.objects.bulk_create(
        rows.values(), batch_size=BATCH, update_conflicts=True, unique_fields=list(KEY), update_fields=fields
    )


def _there(keys: set[tuple[str, int, int]]) -> dict[tuple[str, int, int], Measurement]:
    machines, periods, times = ({key[part] for key in keys} for part in range(3))
    found: Mapping[tuple[str, int, int], Any] = {
        (row.machine, row.period, row.at): row
        for row in Measurement.objects.filter(machine__in=machines, period__in=periods, at__in=times)
    }
    return {key: row for key, row in found.items() if key in keys}
