"""The time axis of a series, and the rows that lie on it."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import F, QuerySet

from .models import Measurement, SamplingTurn

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
