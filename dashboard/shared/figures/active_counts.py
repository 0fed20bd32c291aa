"""Counts activity of today, this week and this month: instances that moved, people who acted."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from machines.audit.activity import PERIODS, Counts, activity, count_people, kept_activity
from machines.engine import EngineUnavailable, SignalboxError
from machines.patterns import Count

from ..errors.panels import Panels
from ..permissions import Scope

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormattedCount:
    """Holds a count as text: ``12,345`` if it is exact, else three digits of it. ``title`` says how exact it is."""

    text: str
    title: str
    is_none: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Holds the counts of one kind: moved or people."""

    kind: str
    figures: list[FormattedCount]


def format_count(count: Count) -> FormattedCount:
    if count.exact:
        return FormattedCount(f"{count.number:,}", "exact", count.number == 0)
    size = 10 ** max(0, len(str(count.number)) - 3)
    shown = round(count.number / size) * size
    return FormattedCount(f"≈ {shown:,}", f"an estimate; its standard error is {count.error:.1%}", False)


def list_rows(scope: Scope, machines: Collection[str], panels: Panels) -> list[Row]:
    """Count for the machines in the viewer's scope; empty if they cannot be counted, or are not counted yet.

    People are counted for viewers of all machines only, since an action may concern any machine.
    """
    try:
        found = kept_activity(machines)
        people = panels.read("people", count_people, None) if scope.all and found is not None else None
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        log.warning("the number of active people is unknown: %s", error)
        return []
    if found is None:
        return []
    return [_make_row("moved", found.moved), *([_make_row("people", people)] if people else [])]


def count_for_machine(machine: str) -> dict[str, FormattedCount]:
    """Return the number of instances that moved, by ``day``, ``week``, ``month``."""
    return {period: format_count(count) for period, count in activity([machine]).moved.items()}


def _make_row(kind: str, counts: Counts) -> Row:
    return Row(kind, [format_count(counts[period]) for period in PERIODS])
