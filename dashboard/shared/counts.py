"""Counts what pages show: instances in each state and version of a machine, jobs in queues."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Page

from machines.engine import Live, Pause, QueueStats, SignalboxError, UnknownMachine, rates
from machines.engine.definitions import Outline, StateOutline
from machines.insight.statistics.series import histogram

from .redacted_engine import RedactedEngine
from .version_view import VersionView, load_versions_of

log = logging.getLogger(__name__)

TABS = 24


@dataclass(frozen=True, slots=True)
class StateCount:
    """Holds one state. ``oldest``: ms at which the oldest instance entered it, None for a compound state.

    ``past``: only other versions have the state as a leaf. ``leaves``: those whose counts add up to a compound state's.
    ``depth``: of nesting. ``sla``: ms an instance should be in it at most, 0 for none.
    """

    state: str
    count: int
    oldest: int | None = None
    final: bool = False
    description: str = ""
    past: bool = False
    leaves: tuple[str, ...] = ()
    depth: int = 0
    sla: int = 0

    @property
    def steps_in(self) -> range:
        return range(self.depth)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Holds the states of a machine.

    ``blocks``: every state. ``shown``: those of the top level, up to a number the fullest; ``left_out`` counts the
    others. ``overdue``: overdue timers. ``partial``: the counts are lower bounds.
    """

    view: VersionView
    blocks: list[StateCount]
    shown: list[StateCount]
    depths: list[Depth]
    total: int
    left_out: int = 0
    overdue: int = 0
    partial: bool = False

    @property
    def name(self) -> str:
        return self.view.machine

    def tabs(self, chosen: str | None = None) -> list[StateCount]:
        """List the states to choose from: those of the top level, of very many those with instances; and the chosen
        one.
        """
        found = self.shown if len(self.shown) <= TABS else [block for block in self.shown if block.count][:TABS]
        block = self.block(chosen) if chosen else None
        return found if block is None or block in found else [*found, block]

    def block(self, state: str) -> StateCount | None:
        return next((block for block in self.blocks if block.state == state), None)


def count_states(
    view: VersionView, live: Live, *, shown: int | None = None, partial: bool = False, named: str | None = None
) -> StateCounts:
    """Count the instances in each state. ``named``: a state that is listed even where only other versions have it and
    no instance is in it."""
    blocks = list(_count_blocks(view, live, named))
    names = {state.name for state in _list_top_states(view.outline)}
    top = [block for block in blocks if block.past or block.state in names]
    kept = _select_fullest(top, shown) if shown else top
    depths = read_depths(view.machine, live.queues)
    return StateCounts(view, blocks, kept, depths, live.total, len(top) - len(kept), live.overdue, partial)


def _list_top_states(outline: Outline) -> list[StateOutline]:
    """List the states of the top level, whose counts add up to the total; of a parallel machine, its leaves."""
    root = outline.state(outline.root) if outline.root else None
    if root is not None and root.type == "parallel":
        return [state for state in outline.states if state.is_leaf]
    return [state for state in outline.states if state.parent == outline.root and state is not root]


def _count_blocks(view: VersionView, live: Live, named: str | None) -> Iterator[StateCount]:
    """Yield the states in the order of the definition, then those of other versions that have instances."""
    outline, sums = view.outline, view.index["sums"]
    counts = outline.sum_counts(live.counts)
    lift = 1 if outline.root else 0
    for state in outline.states:
        if state.name in sums and state.name != outline.root:
            leaves = () if state.is_leaf else tuple(sums[state.name])
            yield StateCount(
                state.name, counts[state.name], live.oldest.get(state.name), state.type == "final", state.description,
                leaves=leaves, depth=state.depth - lift, sla=state.sla,
            )  # fmt: skip
    for name, count in live.counts.items():
        if name not in outline.leaves and (count or name == named):
            yield StateCount(name, count, live.oldest.get(name), past=True)


def _select_fullest(blocks: list[StateCount], shown: int) -> list[StateCount]:
    """Return the ``shown`` states with the most instances, in the order of the definition."""
    if len(blocks) <= shown:
        return blocks
    kept = {id(block) for block in sorted(blocks, key=lambda block: -block.count)[:shown]}
    return [block for block in blocks if id(block) in kept]


PLACES = ("ready", "leased", "delayed", "dead", "handled")


@dataclass(frozen=True, slots=True)
class Depth:
    """Counts jobs by place.

    ``ready`` waits for a worker, ``leased`` is running, ``delayed`` waits for its next attempt, ``dead`` is out of
    attempts, ``handled`` as well: its instance moved on without it.
    """

    machine: str
    queue: str
    ready: int
    leased: int
    delayed: int
    dead: int
    handled: int = 0

    @property
    def route(self) -> str:
        """Return ``machine/queue``, as the live topic and a worker's row name it."""
        return f"{self.machine}/{self.queue}"

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(place, getattr(self, place)) for place in PLACES]

    @property
    def is_empty(self) -> bool:
        """Return whether no job waits, runs or is dead."""
        return not (self.ready or self.leased or self.delayed or self.dead)


def read_depths(machine: str, queues: Mapping[str, Mapping[str, int]]) -> list[Depth]:
    """Read the engine's ``{queue: {place: n}}``, in its order."""
    return [Depth(machine, queue, *(int(held.get(place, 0)) for place in PLACES)) for queue, held in queues.items()]


@dataclass(frozen=True, slots=True)
class Figures:
    """Holds the engine's figures of one queue. ``recent``: statistics of the last hour.

    Times in ms; None if nothing was counted.
    """

    machine: str
    stats: QueueStats
    recent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> Depth:
        return read_depths(self.machine, {self.queue: self.stats.depth})[0]

    @property
    def queue(self) -> str:
        return self.stats.queue

    @property
    def route(self) -> str:
        return f"{self.machine}/{self.queue}"

    @property
    def places(self) -> list[tuple[str, int]]:
        return self.depth.places

    @property
    def paused(self) -> Pause | None:
        return self.stats.paused

    @property
    def is_idle(self) -> bool:
        """Return whether it is empty and not paused."""
        return self.paused is None and self.depth.is_empty

    @property
    def ended(self) -> int:
        """Count the jobs that left the queue for good."""
        return self.stats.completed + self.stats.withdrawn + self.stats.purged

    @property
    def wait(self) -> tuple[float | None, float | None]:
        """Return the median and the 95th percentile of the wait time in the last hour."""
        return _estimate_times(histogram(self.recent.get("waits", {})))

    @property
    def run(self) -> tuple[float | None, float | None]:
        """Return the median and the 95th percentile of the run time in the last hour."""
        return _estimate_times(histogram(self.recent.get("runs", {})))

    @property
    def held_back(self) -> bool:
        return self.stats.concurrency is not None or bool(self.stats.rate)


def _estimate_times(counted: Mapping[int, int]) -> tuple[float | None, float | None]:
    return rates.estimate_quantile(counted, 0.5), rates.estimate_quantile(counted, 0.95)


def rank_depths(depths: Sequence[Depth], fits: int) -> list[Depth]:
    """Order queues as they are where ``fits`` suffices; else those with dead jobs first, then those that wait."""
    return (
        list(depths)
        if len(depths) <= fits
        else sorted(depths, key=lambda depth: (-depth.dead, -depth.ready, depth.route))
    )


def name_topic(kind: str, page: Page[Any], machines: Iterable[str]) -> str:
    """Return the live topic of a page: of all machines, or of ``machines``, those on this page of several."""
    return kind if page.paginator.num_pages == 1 else f"{kind}:{','.join(sorted(set(machines)))}"


NEWEST = 3  # versions without instances that the switch lists beside those with instances


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Holds one version."""

    version: int
    instances: int
    current: bool = False


@dataclass(frozen=True, slots=True)
class VersionCounts:
    """Holds the versions of a machine, newest first. ``current``: the number of the current one."""

    current: int
    rows: tuple[VersionCount, ...] = ()

    @property
    def others(self) -> list[VersionCount]:
        """List the versions that have instances and are not current."""
        return [row for row in self.rows if row.instances and not row.current]

    @property
    def outside(self) -> int:
        """Return how many instances are not of the current version."""
        return sum(row.instances for row in self.others)

    @property
    def several(self) -> bool:
        return len(self.rows) > 1

    def switch(self, chosen: int | None = None) -> list[VersionCount]:
        """List those to choose from: with instances, the newest, the current and the chosen one."""
        newest = {row.version for row in self.rows[:NEWEST]} | {self.current, chosen}
        return [row for row in self.rows if row.instances or row.version in newest]


def count_versions(engine: RedactedEngine, machine: str, live: Live) -> VersionCounts:
    """Count the instances of each version. Raise UnknownMachine."""
    return _arrange(live, engine.versions(machine))


def describe_versions(engine: RedactedEngine, machine: str) -> dict[str, Live | VersionCounts | None]:
    """Return what the tabs of a machine show; None for one that has drafts and no version yet."""
    try:
        live = engine.live(machine)
    except UnknownMachine:
        return {"live": None, "versions": None}
    return {"live": live, "versions": count_versions(engine, machine, live)}


def count_known(live: Live) -> VersionCounts:
    """Count the instances of the versions that have any, without asking for more."""
    return _arrange(live, [live.version])


def _arrange(live: Live, numbers: Iterable[int]) -> VersionCounts:
    """Arrange these versions, and those that have instances."""
    found = {int(number): count for number, count in live.versions.items()}
    every = sorted({*numbers, *found}, reverse=True)
    return VersionCounts(live.version, tuple(VersionCount(n, found.get(n, 0), n == live.version) for n in every))


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Holds a state with instances that a diagram does not have. ``versions``: those that have the state."""

    state: str
    count: int
    versions: tuple[int, ...]


def find_elsewhere(view: VersionView, live: Live, counts: VersionCounts) -> list[Elsewhere]:
    """List the states with instances that are no leaf of ``view``, the fullest first."""
    absent = {state: count for state, count in live.counts.items() if count and state not in view.outline.leaves}
    if not absent:
        return []
    numbers = [row.version for row in counts.rows if row.instances and row.version != view.version]
    try:
        others = load_versions_of(view.machine, numbers)
    except SignalboxError:  # a version that cannot be read: the states are named without their versions
        others = {}
    found = [
        Elsewhere(state, count, tuple(n for n, other in others.items() if state in other.outline.leaves))
        for state, count in absent.items()
    ]
    return sorted(found, key=lambda each: (-each.count, each.state))
