"""Reads measured statistics as lines on one time axis, and computes the lines of each kind of series."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import F, QuerySet, Sum

from machines.engine.rates import estimate_quantile

from .models import Measurement, SamplingTurn
from .recording import Counters, add_counters

MOST = 6  # lines of one chart; what is left over is added up as one more

SUMMED = ("covered", "transitions", "enqueued", "completed", "failed", "died", "refused")
"""Columns that the database adds up."""

FAILURES = {"attempts failed": "failed", "jobs died": "died", "events refused": "refused"}
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

Period = Measurement.Period


@dataclass(frozen=True, slots=True)
class Span:
    """``length`` and ``step`` in seconds; ``period``: the rows it is made of."""

    length: int
    step: int
    period: int


SPANS = {
    "hour": Span(3600, 60, Period.MINUTE),
    "day": Span(86_400, 900, Period.MINUTE),
    "month": Span(30 * 86_400, 6 * 3600, Period.HOUR),
}


@dataclass(frozen=True, slots=True)
class Axis:
    span: Span
    at: list[int]
    turn: SamplingTurn | None


def axis_of(span: str, now: int | None = None) -> Axis:
    """Return the axis, which ends with the step that runs. ``now``: ms. Raises KeyError for another span."""
    found = SPANS[span]
    moment = int(time.time()) if now is None else now // 1000
    last = moment - moment % found.step
    turn = SamplingTurn.objects.filter(pk=1, began__gt=0).first()
    return Axis(found, list(range(last - found.length + found.step, last + 1, found.step)), turn)


def rows_of(axis: Axis, machines: Collection[str]) -> QuerySet[Measurement]:
    """Return each with the step it lies in as ``bucket``."""
    step = axis.span.step
    found = Measurement.objects.filter(machine__in=list(machines), period=axis.span.period, at__gte=axis.at[0])
    return found.filter(at__lt=axis.at[-1] + step).annotate(bucket=F("at") - F("at") % step).order_by()


@dataclass(frozen=True, slots=True)
class Line:
    """``values``: one for each moment of the axis, None where nothing was measured. ``total``: how many there were in
    all that was measured; None where that says nothing (times). ``rest``: the sum of all that have no line."""

    name: str
    values: list[float | None]
    total: int | None = None
    rest: bool = False


@dataclass
class MeasuredMachines:
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


@dataclass(frozen=True, slots=True)
class Gap:
    """Nobody measured from ``begin`` to ``end``, s. What happened is known as a whole: so many transitions."""

    machine: str
    begin: int
    end: int
    transitions: int


@dataclass(frozen=True, slots=True)
class Series:
    """``at``: where each step of the axis begins, s since 1970; ``step``: s; ``unit``: "/min", "ms" or "" (a count).

    ``measured``: s of the last sampling, 0 where there was none yet; ``began``: of the first.
    """

    what: str
    span: str
    unit: str
    step: int
    at: list[int]
    lines: list[Line]
    gaps: list[Gap] = field(default_factory=list)
    measured: int = 0
    began: int = 0

    @property
    def is_empty(self) -> bool:
        return all(value is None for line in self.lines for value in line.values)


def series(
    machines: Collection[str], span: str = "hour", what: str = "transitions", *, queue: str = "", now: int | None = None
) -> Series:
    """Return lines over the last hour, day or month (30 days), in steps of a minute, a quarter and six hours.

    ``what``: "transitions" of each machine; "work" and "failures" of all of them together; "edges", "refused" and
    "instances" of one; "throughput", "waits", "runs" and "times" (both) of ``queue``, or of all queues where none is
    named. Rates are a minute's, over the time that was measured. Times are p50, p95 and p99 in ms: they are counted by
    powers of two and taken as evenly spread between two of these, so that they are right to a factor of two.

    The caller answers for who may see these machines. ``now``: ms. Raises KeyError for another span or ``what``.
    """
    return several(machines, span, (what,), queue=queue, now=now)[0]


def several(
    machines: Collection[str],
    span: str,
    whats: Iterable[str],
    *,
    queue: str = "",
    most: int = MOST,
    now: int | None = None,
) -> list[Series]:
    """Return the same of several kinds, with what they are made of read once. ``most``: lines of their own."""
    read = MeasuredMachines(axis_of(span, now), sorted(set(machines)), most)
    axis, turn = read.axis, read.axis.turn
    measured, began = (turn.at // 1000, turn.began // 1000) if turn else (0, 0)
    gaps = _find_gaps(axis, machines)
    return [
        Series(what, span, unit, axis.span.step, axis.at, make(read, queue), gaps, measured, began)
        for what, (make, unit) in ((what, WHATS[what]) for what in whats)
    ]


def rates_by_machine(machines: Collection[str], span: str, *, now: int | None = None) -> dict[str, list[float | None]]:
    """Return machine -> its transitions a minute at each step of the axis, read in one query for all of them."""
    read = MeasuredMachines(axis_of(span, now), sorted(set(machines)), most=len(machines))
    return {line.name: line.values for line in WHATS["transitions"][0](read, "")}


def recent_times(machines: Collection[str], *, now: int | None = None) -> dict[str, dict[str, Counters]]:
    """Return machine -> queue -> what was counted of it in the last hour, its histograms ``waits`` and ``runs`` among
    it."""
    found: dict[str, dict[str, Counters]] = {}
    for machine, numbers in rows_of(axis_of("hour", now), machines).values_list("machine", "numbers"):
        found[machine] = add_counters(found.get(machine, {}), numbers.get("queues", {}))
    return found


def _find_gaps(axis: Axis, machines: Collection[str]) -> list[Gap]:
    rows = Measurement.objects.filter(machine__in=list(machines), period=Period.GAP, at__gte=axis.at[0])
    found = rows.order_by("at").values_list("machine", "at", "covered", "transitions")
    return [Gap(machine, at, at + ms // 1000, count) for machine, at, ms, count in found]


def histogram(counted: Mapping[str, int]) -> dict[int, int]:
    """Return the histogram as ``quantile`` takes it."""
    return {int(magnitude): count for magnitude, count in counted.items()}


# Sums the database adds up


@dataclass(slots=True)
class _Bucket:
    covered: int = 0
    count: int = 0


def _transitions(read: MeasuredMachines, queue: str) -> list[Line]:
    found: dict[str, dict[int, _Bucket]] = {}
    for row in read.summed:
        found.setdefault(row["machine"], {})[row["bucket"]] = _Bucket(row["sum_covered"], row["sum_transitions"])
    return _limit_lines([_rate(read.axis, name, buckets) for name, buckets in found.items()], read.most)


def _sums(read: MeasuredMachines, names: Mapping[str, str]) -> list[Line]:
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


def _instances(read: MeasuredMachines, queue: str) -> list[Line]:
    """Return the instances as they were at the end of each step."""
    rows = rows_of(read.axis, read.machines).order_by("at").values_list("machine", "bucket", "instances")
    last = {(machine, bucket): count for machine, bucket, count in rows}
    lines = []
    for name in read.machines:
        values = [last.get((name, at)) for at in read.axis.at]
        lines.append(Line(name, [None if value is None else float(value) for value in values]))
    return lines


# What each row keeps in detail


def _draw_details(read: MeasuredMachines, kind: str) -> list[Line]:
    covered, counted = read.in_detail
    names = {name for numbers in counted.values() for name in numbers.get(kind, {})}
    lines = [
        _rate(read.axis, name, {at: _Bucket(ms, counted[at].get(kind, {}).get(name, 0)) for at, ms in covered.items()})
        for name in names
    ]
    return _limit_lines(lines, read.most)


def _throughput(read: MeasuredMachines, queue: str) -> list[Line]:
    covered, counted = read.in_detail
    lines = []
    for label, names in {"in": ["enqueued"], "completed": ["completed"], "failed": ["failed", "lost"]}.items():
        buckets = {}
        for at, ms in covered.items():
            found = _of_queue(counted[at], queue)
            buckets[at] = _Bucket(ms, sum(found.get(name, 0) for name in names))
        lines.append(_rate(read.axis, label, buckets))
    return lines


def _quantiles(read: MeasuredMachines, queue: str, kind: str, before: str = "") -> list[Line]:
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


def _limit_lines(lines: list[Line], most: int) -> list[Line]:
    """Return those with the most, the most first; all others as one more line."""
    ordered = sorted(lines, key=lambda line: (-(line.total or 0), line.name))
    if len(ordered) <= most + 1:
        return ordered
    kept, left = ordered[:most], ordered[most:]
    columns = zip(*(line.values for line in left), strict=True)
    values = [_round(sum(known)) if (known := [v for v in column if v is not None]) else None for column in columns]
    name = f"{len(left)} others"
    return [*kept, Line(name, values, sum(line.total or 0 for line in left), rest=True)]


WHATS: dict[str, tuple[Callable[[MeasuredMachines, str], list[Line]], str]] = {
    "transitions": (_transitions, "/min"),
    "work": (lambda read, _: _sums(read, {"enqueued": "enqueued", "completed": "completed"}), "/min"),
    "failures": (lambda read, _: _sums(read, FAILURES), "/min"),
    "instances": (_instances, ""),
    "edges": (lambda read, _: _draw_details(read, "edges"), "/min"),
    "refused": (lambda read, _: _draw_details(read, "refused"), "/min"),
    "throughput": (_throughput, "/min"),
    "times": (
        lambda read, queue: _quantiles(read, queue, "waits", "wait ") + _quantiles(read, queue, "runs", "run "),
        "ms",
    ),
    "waits": (lambda read, queue: _quantiles(read, queue, "waits"), "ms"),
    "runs": (lambda read, queue: _quantiles(read, queue, "runs"), "ms"),
}
"""what -> how it is made, and its unit."""
