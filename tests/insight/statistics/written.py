"""What stands in SQL, as tests of statistics read it."""

from __future__ import annotations

from machines.models import Measurement

from .conftest import START

MINUTES, HOURS, GAPS = Measurement.Period.MINUTE, Measurement.Period.HOUR, Measurement.Period.GAP


def rows(period: int, column: str = "transitions") -> list[tuple[float, int]]:
    """(minutes after the start, value), the oldest first."""
    found = Measurement.objects.filter(period=period).order_by("at").values_list("at", column)
    return [((at - START // 1000) / 60, value) for at, value in found]


def total(column: str = "transitions", period: int = MINUTES) -> int:
    return sum(value for _, value in rows(period, column))
