"""Statistics of the last hour, day or month."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from pydantic import Field

from dashboard.api.framework.operation import Group, engine_of
from dashboard.api.framework.schemas import Ms, Out
from machines.statistics.series import Series, series

group = Group("statistics", "Metrics of the last hour, day or month.")
Spans = Literal["hour", "day", "month"]


class LineOut(Out):
    name: str
    values: list[float | None] = Field(description="one for each moment of `at`; null where nothing was measured")
    total: int | None = Field(None, description="how many in all that was measured")
    rest: bool = Field(False, description="the sum of all that have no line of their own")


class GapOut(Out):
    machine: str
    begin: Ms
    end: Ms
    transitions: int = Field(description="in all of it; when, nobody measured")


class SeriesOut(Out):
    what: str
    span: str
    unit: str = Field(description='"/min", "ms", or empty for a count')
    step: int = Field(description="ms between two moments")
    at: list[int] = Field(description="where each step begins, ms")
    lines: list[LineOut]
    gaps: list[GapOut]
    measured: Ms = Field(description="the last measurement, ms; 0 before the first")


def _describe(found: Series) -> dict[str, Any]:
    gaps = [
        {"machine": gap.machine, "begin": gap.begin * 1000, "end": gap.end * 1000, "transitions": gap.transitions}
        for gap in found.gaps
    ]
    return {
        "what": found.what,
        "span": found.span,
        "unit": found.unit,
        "step": found.step * 1000,
        "at": [at * 1000 for at in found.at],
        "lines": found.lines,
        "gaps": gaps,
        "measured": found.measured * 1000,
    }


@group.get("/statistics", id="getStatistics", right="view", answers=SeriesOut, summary="Get statistics of all machines")
def everywhere(
    request: HttpRequest, what: Literal["transitions", "work", "failures"] = "transitions", span: Spans = "hour"
) -> dict[str, Any]:
    """Return the figures of all machines the caller may see. Rates are a minute's."""
    return _describe(series(list(engine_of(request).machines()), span, what))


@group.get(
    "/machines/{name:machine}/statistics", id="getMachineStatistics", right="view", answers=SeriesOut,
    summary="Get statistics of a machine or a queue",
)  # fmt: skip
def of_machine(
    request: HttpRequest,
    machine: str,
    what: Literal[
        "transitions", "work", "failures", "edges", "refused", "instances", "throughput", "waits", "runs", "times"
    ] = "edges",
    span: Spans = "hour",
    queue: str = "",
) -> dict[str, Any]:
    """Return the figures of one machine. `queue` narrows throughput and times. Times are p50, p95 and p99, right to a
    factor of two."""
    engine_of(request).live(machine)  # raises where there is none
    return _describe(series([machine], span, what, queue=queue))
