"""Reads measured statistics as lines on one time axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from .axis import Axis, Period, axis_of, rows_of
from .counters import Counters, add_counters
from .lines import MOST, WHATS, Line, Measured
from .models import Measurement


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
    read = Measured(axis_of(span, now), sorted(set(machines)), most)
    gaps = _gaps(read.axis, machines)
    return [_series(read, span, what, queue, gaps) for what in whats]


def rates_by_machine(machines: Collection[str], span: str, *, now: int | None = None) -> dict[str, list[float | None]]:
    """Return machine -> its transitions a minute at each step of the axis, read in one query for all of them."""
    read = Measured(axis_of(span, now), sorted(set(machines)), most=len(machines))
    return {line.name: line.values for line in WHATS["transitions"][0](read, "")}


def _series(read: Measured, span: str, what: str, queue: str, gaps: list[Gap]) -> Series:
    make, unit = WHATS[what]
    axis, turn = read.axis, read.axis.turn
    measured, began = (turn.at // 1000, turn.began // 1000) if turn else (0, 0)
    return Series(what, span, unit, axis.span.step, axis.at, make(read, queue), gaps, measured, began)


def recent_times(machines: Collection[str], *, now: int | None = None) -> dict[str, dict[str, Counters]]:
    """Return machine -> queue -> what was counted of it in the last hour, its histograms ``waits`` and ``runs`` among
    it."""
    found: dict[str, dict[str, Counters]] = {}
    for machine, numbers in rows_of(axis_of("hour", now), machines).values_list("machine", "numbers"):
        found[machine] = add_counters(found.get(machine, {}), numbers.get("queues", {}))
    return found


def _gaps(axis: Axis, machines: Collection[str]) -> list[Gap]:
    rows = Measurement.objects.filter(machine__in=list(machines), period=Period.GAP, at__gte=axis.at[0])
    found = rows.order_by("at").values_list("machine", "at", "covered", "transitions")
    return [Gap(machine, at, at + ms // 1000, count) for machine, at, ms, count in found]
