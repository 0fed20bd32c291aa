"""How many were active today, this week, this month: instances that moved, and people who pulled a lever."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from dashboard.shared.access import Scope
from machines.engine import EngineUnavailable, SignalboxError
from machines.patterns import Count
from machines.statistics.activity import PERIODS, Counts, activity

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormattedCount:
    """One figure as people read it: ``12,345`` where it is exact, else three digits of it. ``title`` says how exact."""

    text: str
    title: str
    is_none: bool


@dataclass(frozen=True, slots=True)
class Row:
    """``kind``: moved or people."""

    kind: str
    figures: list[FormattedCount]


def format_count(count: Count) -> FormattedCount:
    if count.exact:
        return FormattedCount(f"{count.number:,}", "exact", count.number == 0)
    size = 10 ** max(0, len(str(count.number)) - 3)
    shown = round(count.number / size) * size
    return FormattedCount(f"≈ {shown:,}", f"an estimate; its standard error is {count.error:.1%}", False)


def list_rows(scope: Scope, machines: Collection[str]) -> list[Row]:
    """Of the machines, all in the viewer's scope; people only for whoever may see every machine, since a lever may be
    any machine's. None where they cannot be counted."""
    try:
        found = activity(machines, people=scope.all)
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        log.warning("who is active cannot be told: %s", error)
        return []
    return [_row("moved", found.moved), *([_row("people", found.people)] if found.people else [])]


def count_for_machine(machine: str) -> dict[str, FormattedCount]:
    """``day``, ``week``, ``month`` -> how many of its instances moved."""
    return {period: format_count(count) for period, count in activity([machine]).moved.items()}


def _row(kind: str, counts: Counts) -> Row:
    return Row(kind, [format_count(counts[period]) for period in PERIODS])
