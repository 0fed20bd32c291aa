"""Computes the lines of each kind of series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Sum

from machines.engine.rates import estimate_quantile

from .axis import Axis, rows_of
from .counters import Counters, add_counters

MOST = 6  # lines of one chart; what is left over is added up as one more

SUMMED = ("covered", "transitions", "enqueued", "completed", "failed", "died", "refused")
"""Columns that the database adds up."""
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Line:
    """``values``: one for each moment of the axis, None where nothing was measured. ``total``: how many there were in
    all that was measured; None where that says nothing (times). ``rest``: the sum of all that have no line."""

    name: str
    values: list[float | None]
    total: int | None = None
    rest: bool = False


@dataclass
class Measured:
    """What several kinds of series of the same machines are made of, read once."""

    axis: Axis
    machines: list[str]
    most: int = MOST

    @cached_property
    def in_detail(self) -> tuple[dict[int, int], dict[int, Counters]]:
        """For each step: ms that were measured, and the numbers of all its rows together."""
        covered: dict[int, int] = {}
        counted: dict[int, Counters] = {}
        rows = rows_of(self.axis, self.machines).order_by("at").values_list("bucket", "covered", "numbers")
        for bucket, ms, numbers in rows:
            covered[bucket] = covered.get(bucket, 0) + ms
            counted[bucket] = add_counters(counted.get(bucket, {}), numbers)
        return covered, counted

    @cached_property
    def summed(self) -> list[dict[str, Any]]:
        """For each machine and step: what the rows add up to, in every column that lines are made of."""
        sums = {f"sum_{column}": Sum(column) for column in SUMMED}
        return list(rows_of(self.axis, self.machines).values("machine", "bucket").annotate(**sums))


def histogram(counted: Mapping[str, int]) -> dict[int, int]:
    """Return the histogram as ``quantile`` takes it."""
    return {int(magnitude): count for magnitude, count in counted.items()}


# Sums the database adds up


@dataclass(slots=True)
class _Bucket:
    covered: int = 0
    count: int = 0


def _transitions(read: Measured, queue: str) -> list[Line]:
    found: dict[str, dict[int, _Bucket]] = {}
    for row in read.summed:
        found.setdefault(row["machine"], {})[row["bucket"]] = _Bucket(row["sum_covered"], row["sum_transitions"])
    return _fewest([_rate(read.axis, name, buckets) for name, buckets in found.items()], read.most)


def _sums(read: Measured, names: Mapping[str, str]) -> list[Line]:
    """Add up the rates of all machines, since each may be measured for another time."""
    rows, lines = read.summed, []
    for label, column in names.items():
        values: dict[int, float] = {}
        for row in rows:
            if ms := row["sum_covered"]:
                values[row["bucket"]] = values.get(row["bucket"], 0) + row[f"sum_{column}"] * 60_000 / ms
        total = sum(row[f"sum_{column}"] for row in rows)
        lines.append(Line(label, [_round(values.get(at)) for at in read.axis.at], total))
    return lines


def _work(read: Measured, queue: str) -> list[Line]:
    return _sums(read, {"enqueued": "enqueued", "completed": "completed"})


def _failures(read: Measured, queue: str) -> list[Line]:
    return _sums(read, {"attempts failed": "failed", "jobs died": "died", "events refused": "refused"})


def _instances(read: Measured, queue: str) -> list[Line]:
    """Return the instances as they were at the end of each step."""
    rows = rows_of(read.axis, read.machines).order_by("at").values_list("machine", "bucket", "instances")
    last = {(machine, bucket): count for machine, bucket, count in rows}
    lines = []
    for name in read.machines:
        values = [last.get((name, at)) for at in read.axis.at]
        lines.append(Line(name, [None if value is None else float(value) for value in values]))
    return lines


# What each row keeps in detail


def _edges(read: Measured, queue: str) -> list[Line]:
    return _draw_details(read, "edges")


def _draw_refusals(read: Measured, queue: str) -> list[Line]:
    return _draw_details(read, "refused")


def _draw_details(read: Measured, kind: str) -> list[Line]:
    covered, counted = read.in_detail
    names = {name for numbers in counted.values() for name in numbers.get(kind, {})}
    lines = [
        _rate(read.axis, name, {at: _Bucket(ms, counted[at].get(kind, {}).get(name, 0)) for at, ms in covered.items()})
        for name in names
    ]
    return _fewest(lines, read.most)


def _throughput(read: Measured, queue: str) -> list[Line]:
    covered, counted = read.in_detail
    lines = []
    for label, names in {"in": ["enqueued"], "completed": ["completed"], "failed": ["failed", "lost"]}.items():
        buckets = {}
        for at, ms in covered.items():
            found = _of_queue(counted[at], queue)
            buckets[at] = _Bucket(ms, sum(found.get(name, 0) for name in names))
        lines.append(_rate(read.axis, label, buckets))
    return lines


def _times(read: Measured, queue: str) -> list[Line]:
    return _quantiles(read, queue, "waits", "wait ") + _quantiles(read, queue, "runs", "run ")


def _waits(read: Measured, queue: str) -> list[Line]:
    return _quantiles(read, queue, "waits")


def _runs(read: Measured, queue: str) -> list[Line]:
    return _quantiles(read, queue, "runs")


def _quantiles(read: Measured, queue: str, kind: str, before: str = "") -> list[Line]:
    _, counted = read.in_detail
    found = {at: histogram(_of_queue(numbers, queue).get(kind, {})) for at, numbers in counted.items()}
    return [
        Line(f"{before}{label}", [_round(estimate_quantile(found.get(at, {}), share)) for at in read.axis.at])
        for label, share in QUANTILES.items()
    ]


def _of_queue(numbers: Counters, queue: str) -> Counters:
    """Return the counts of one queue, or of all together."""
    queues = numbers.get("queues", {})
    if queue:
        return dict(queues.get(queue, {}))
    found: Counters = {}
    for each in queues.values():
        found = add_counters(found, each)
    return found


def _rate(axis: Axis, name: str, buckets: Mapping[int, _Bucket]) -> Line:
    """Return a minute's rate over the time that was measured."""
    values = []
    for at in axis.at:
        bucket = buckets.get(at)
        values.append(_round(bucket.count * 60_000 / bucket.covered) if bucket and bucket.covered else None)
    return Line(name, values, sum(bucket.count for at, bucket in buckets.items()))


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _fewest(lines: list[Line], most: int) -> list[Line]:
    """Return those with the most, the most first; all others as one more line."""
    ordered = sorted(lines, key=lambda line: (-(line.total or 0), line.name))
    if len(ordered) <= most + 1:
        return ordered
    kept, left = ordered[:most], ordered[most:]
    columns = zip(*(line.values for line in left), strict=True)
    values = [_round(sum(known)) if (known := [v for v in column if v is not None]) else None for column in columns]
    name = f"{len(left)} others"
    return [*kept, Line(name, values, sum(line.total or 0 for line in left), rest=True)]


WHATS = {
    "transitions": (_transitions, "/min"),
    "work": (_work, "/min"),
    "failures": (_failures, "/min"),
    "instances": (_instances, ""),
    "edges": (_edges, "/min"),
    "refused": (_draw_refusals, "/min"),
    "throughput": (_throughput, "/min"),
    "times": (_times, "ms"),
    "waits": (_waits, "ms"),
    "runs": (_runs, "ms"),
}
"""what -> how it is made, and its unit."""
