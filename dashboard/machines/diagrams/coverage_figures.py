"""Compares what tests covered of a version with what its real instances did, transition by transition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.shared.diagrams.version_view import VersionView
from machines.catalog.coverage import Coverage, Part, list_parts, percent
from machines.catalog.models import StoredCoverage
from machines.catalog.queries import get_version
from machines.engine import Live
from machines.engine.definitions import TransitionOutline
from machines.models import Measurement

DAYS = 30
SECONDS = DAYS * 86_400
TESTED, IDLE, UNUSED, UNTESTED = 1, 2, 3, 5  # the colours


@dataclass(frozen=True, slots=True)
class Row:
    """A transition with its tests and its traffic. ``lately``: it was taken in the last 30 days, None where nobody
    measured."""

    transition: TransitionOutline
    tests: int
    taken: int
    lately: bool | None
    unseen: bool = False

    @property
    def label(self) -> str:
        one = self.transition
        event = ", ".join(one.events) if one.cause == "on" else one.cause
        return f"{one.source} → {', '.join(one.targets) or one.target or one.source}: {event}"

    @property
    def heat(self) -> int:
        if not self.tests:
            return UNTESTED if self.taken else UNUSED
        return IDLE if not self.taken or self.lately is False else TESTED

    @property
    def said(self) -> str:
        """Return both in words: ``never tested, taken 4,212 times``."""
        tests = "tested" if self.tests else "never tested"
        times = "never taken" if not self.taken else f"taken {self.taken:,} time{'' if self.taken == 1 else 's'}"
        if self.taken and self.lately is False:
            times = f"not taken in {DAYS} days"
        return f"{tests}, {times}" + ("; no test saw its guard false" if self.unseen else "")


@dataclass(frozen=True, slots=True)
class CoverageFigures:
    """The rows of a version. ``at``: when its tests were reported, None where they never were; ``by``: by whom."""

    rows: list[Row] = field(default_factory=list)
    at: datetime | None = None
    by: str = ""
    share: int = 0

    def find(self, ids: Iterable[str]) -> list[Row]:
        wanted = set(ids)
        return [row for row in self.rows if row.transition.id in wanted]


def read_coverage(view: VersionView, live: Live) -> CoverageFigures:
    """Read what tests reported of exactly this definition, and how often its transitions were taken."""
    digest = get_version(view.machine, view.version, without=("drawing",)).digest
    report = StoredCoverage.find(view.machine, digest)
    coverage = Coverage(view.machine, digest) if report is None else Coverage.from_dict(report.numbers)
    lately = _list_taken_lately(view, live)
    parts: list[Part] = list_parts(view.outline, coverage)
    unseen = {part.transition.id for part in parts if part.outcome != "taken" and not part.covered}
    rows = []
    for state in view.outline.states:
        for one in state.transitions:
            taken = live.flow.get(f"{view.version}:{one.id}", 0)
            tests = coverage.taken[one.id]
            rows.append(
                Row(one, tests, taken, None if lately is None else one.id in lately, tests > 0 and one.id in unseen)
            )
    if report is None:
        return CoverageFigures(rows)
    return CoverageFigures(rows, report.recorded_at, report.recorded_by, round(percent(parts)))


def _list_taken_lately(view: VersionView, live: Live) -> set[str] | None:
    """Return the transitions that were taken in the last 30 days; None where fewer days were measured."""
    since = live.now // 1000 - SECONDS
    rows = Measurement.objects.filter(machine=view.machine)
    if not rows.filter(at__lt=since + 86_400).exists():
        return None
    before = f"{view.version}:"
    edges = (numbers.get("edges", {}) for numbers in rows.filter(at__gte=since).values_list("numbers", flat=True))
    return {edge.removeprefix(before) for found in edges for edge in found if edge.startswith(before)}
