"""Computes the figures of each mode of a diagram."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from dashboard.shared.diagram_modes import (
    DAYS,
    IDLE,
    LENGTHS,
    MINUTE,
    MODES,
    TESTED,
    UNTESTED,
    UNUSED,
    Mode,
    format_count,
    format_duration,
    format_rate,
)  # fmt: skip
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.version_view import VersionView
from machines.catalog.coverage import Coverage, Part, list_parts, percent
from machines.catalog.models import StoredCoverage
from machines.catalog.queries import get_version
from machines.engine import Live, SignalboxError
from machines.engine.definitions import Outline, StateOutline, TransitionOutline
from machines.insight.statistics import present as statistics
from machines.insight.statistics.ages import format_age
from machines.models import Measurement

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """Holds a mark for what is wrong in a state, in any mode. ``text`` is drawn; ``said``: for screen readers."""

    text: str
    said: str


@dataclass(slots=True)
class ModeFigures:
    """Holds the figures of one mode: texts by state, transition and queue, and the marks that are not empty."""

    mode: Mode
    states: dict[str, str] = field(default_factory=dict)
    heat: dict[str, int] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    queue_heat: dict[str, int] = field(default_factory=dict)
    flow_texts: dict[str, str] = field(default_factory=dict)
    flow_heat: dict[str, int] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)


class ModeReadings(NamedTuple):
    """What a mode shows beside the counts. ``in_error``: state -> instances in error; ``rates``: for a ``moving`` mode;
    ``coverage``: for the mode of tests; ``partial``: the counts are lower bounds."""

    in_error: Mapping[str, int] = MappingProxyType({})
    rates: TransitionRates | None = None
    coverage: CoverageFigures | None = None
    partial: bool = False


NO_READINGS = ModeReadings()


def read_figures(mode: Mode, view: VersionView, live: Live, readings: ModeReadings) -> ModeFigures:
    """Compute the current figures."""
    found, rates = ModeFigures(mode), readings.rates or TransitionRates()
    failing = view.drawn.sum_counts(readings.in_error) | dict(readings.in_error)
    if mode is MODES["failures"]:
        figures: Mapping[str, float] = failing
    elif mode is MODES["tests"]:
        figures = {}
    elif mode is MODES["time"]:
        figures = rates.estimate_stays(count_instances(view, live))
    else:
        figures = FIGURES_OF[mode.name](view, live)
    found.marks = list_marks(view, live, failing)
    for state, figure in figures.items():
        found.heat[state] = mode.heat(figure) if mode is not MODES["flow"] else 0
        found.states[state] = format_duration(figure) if mode.bounds is LENGTHS else format_count(int(figure))
    place = "dead" if mode is MODES["failures"] else "ready"
    jobs = {queue: live.queues.get(queue, {}).get(place, 0) for queue in view.index["queues"]}
    found.queues = {queue: format_count(number) for queue, number in jobs.items()}
    if mode is MODES["failures"]:
        found.queue_heat = {queue: mode.heat(number) for queue, number in jobs.items()}
        found.flow_texts = dict.fromkeys(view.index["transitions"].values(), "")
    elif mode is MODES["flow"]:
        _fill_rates(found, view, rates)
    elif mode is MODES["tests"]:
        _fill_coverage(found, view, readings.coverage or CoverageFigures())
    else:
        found.flow_texts = {
            part: format_count(taken) if taken else "" for part, taken in count_flows(view, live).items()
        }
    return found


def _fill_rates(found: ModeFigures, view: VersionView, rates: TransitionRates) -> None:
    ids: dict[str, list[str]] = {}
    for transition, part in view.index["transitions"].items():
        ids.setdefault(part, []).append(transition)
    for part, together in ids.items():
        rate = rates.per_minute(together)
        found.flow_texts[part] = format_rate(rate) if rate else ""
        found.flow_heat[part] = found.mode.heat(rate)


def _fill_coverage(found: ModeFigures, view: VersionView, coverage: CoverageFigures) -> None:
    """Write tests and traffic at each line; where a line stands for several transitions, the worst of them."""
    ids: dict[str, list[str]] = {}
    for transition, part in view.index["transitions"].items():
        ids.setdefault(part, []).append(transition)
    for part, together in ids.items():
        rows = coverage.find(together)
        taken = sum(row.taken for row in rows)
        text = format_count(taken) if taken else ""
        if coverage.at is not None and rows:
            text = f"{'✓' if all(row.tests for row in rows) else '✕'} {text}".rstrip()
            found.flow_heat[part] = max(row.heat for row in rows)
        found.flow_texts[part] = text


def count_flows(view: VersionView, live: Live) -> dict[str, int]:
    """Count how often each line was taken. In a folded diagram a line stands for several transitions."""
    taken: Counter[str] = Counter()
    for transition, part in view.index["transitions"].items():
        taken[part] += live.flow.get(f"{view.version}:{transition}", 0)
    return taken


def list_marks(view: VersionView, live: Live, failing: Mapping[str, int]) -> dict[str, Mark]:
    found = {}
    for id, (state, of) in view.index["marks"].items():
        kind = id.partition("-")[0]
        figures = live.breaches if kind == "late" else failing
        if any(figures.get(each) for each in of):
            found[id] = make_mark(kind, state, figures.get(state, 0) if of == [state] else 0)
    return found


def make_mark(kind: str, state: str, number: int) -> Mark:
    """Make a mark. ``number`` 0: an unknown number, in folded states."""
    sign, why = MARKS[kind]
    text = f"{sign} {format_count(number)}" if number else sign
    said = f"{number:,} in {state} {why}" if number else f"in {state} (collapsed): some {why}"
    return Mark(text, said)


MARKS = {"late": ("▲", "over service level"), "failing": ("✕", "in error")}


def count_instances(view: VersionView, live: Live) -> dict[str, float]:
    return dict(view.drawn.sum_counts(live.counts))


def read_ages(view: VersionView, live: Live) -> dict[str, float]:
    """Return the ms since the oldest instance entered each state; of a compound state, in any of its leaves."""
    found = {}
    for state, leaves in view.index["sums"].items():
        entered = [live.oldest[leaf] for leaf in leaves if live.counts.get(leaf) and live.oldest.get(leaf)]
        if entered:
            found[state] = max(0, live.now - min(entered))
    return found


FIGURES_OF = {"count": count_instances, "age": read_ages, "flow": count_instances}


SECONDS = DAYS * 86_400


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


@dataclass(frozen=True, slots=True)
class TransitionRates:
    """Holds what was counted in the last ``window`` ms: by transition, and of ``others``, the versions that the diagram
    does not show. ``exits``: state -> the transitions by which instances leave it; ``around``: state -> those of its
    ancestors. Without measurements ``window`` is 0.
    """

    window: int = 0
    counted: Mapping[str, int] = field(default_factory=dict)
    others: int = 0
    exits: Mapping[str, list[str]] = field(default_factory=dict)
    around: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def interval(self) -> str:
        """Return ``over the last 15 min``, or why there are no rates."""
        if not self.window:
            return "no rates: workers measure them once a minute, and none has lately"
        return f"over the last {format_age(self.window / 1000)}"

    def per_minute(self, ids: Iterable[str]) -> float:
        """Return how often a minute these transitions are taken together; 0 without measurements."""
        return sum(self.counted.get(id, 0) for id in ids) * MINUTE / self.window if self.window else 0.0

    def estimate_stays(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Estimate the mean time in each state, ms, by Little's law: instances in the state / exits per minute.

        A state is left out if nothing leaves it, and if instances leave by a transition of an enclosing state or in
        another version, since those exits cannot be counted separately.
        """
        if self.others:
            return {}
        found = {}
        for state, count in counts.items():
            leaving = self.per_minute(self.exits.get(state, ()))
            if count and leaving and not self.per_minute(self.around.get(state, ())):
                found[state] = count / leaving * MINUTE
        return found


def read_rates(view: VersionView, live: Live, panels: Panels) -> TransitionRates:
    """Read the rates of a version. Statistics that cannot be read are left out: the page goes on without them."""
    exits, around = list_exits(view.drawn)
    try:
        flow = panels.read("rates", lambda: statistics.recent_flow(live), None)
    except SignalboxError as error:
        log.warning("the rates of %s cannot be read: %s", view.machine, error)
        flow = None
    if flow is None:
        return TransitionRates(exits=exits, around=around)
    before = f"{view.version}:"
    own = {edge.removeprefix(before): count for edge, count in flow.counted.items() if edge.startswith(before)}
    return TransitionRates(flow.window, own, sum(flow.counted.values()) - sum(own.values()), exits, around)


def list_exits(outline: Outline) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """List the transitions that leave each state, and those that leave it from one of its ancestors."""
    inside: dict[str, set[str]] = {state.name: set() for state in outline.states}
    for state in outline.states:
        for above in outline.lineage(state.name):
            inside[above.name].add(state.name)
    exits = {state.name: _list_own_exits(outline, state, inside[state.name]) for state in outline.states}
    around = {
        state.name: [
            each.id for above in outline.lineage(state.name)[1:] for each in above.transitions if _list_targets(each)
        ]
        for state in outline.states
    }
    return exits, {name: ids for name, ids in around.items() if ids}


def _list_own_exits(outline: Outline, state: StateOutline, inside: set[str]) -> list[str]:
    own = [each.id for each in state.transitions if _list_targets(each)]
    inner = [
        each.id
        for name in sorted(inside - {state.name})
        if (source := outline.state(name)) is not None
        for each in source.transitions
        if not inside.issuperset(_list_targets(each))
    ]
    return own + inner


def _list_targets(transition: TransitionOutline) -> tuple[str, ...]:
    """List the states that a transition leads to; none where the state is not left."""
    return transition.targets or ((transition.target,) if transition.target else ())
