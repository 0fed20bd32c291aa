"""Counts the instances of each version of a machine, for the version switch, the overview and the list of versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from machines.engine import Live, SignalboxError

from ..diagrams.version_view import VersionView, load_versions_of
from ..redacted_engine import RedactedEngine

NEWEST = 3  # versions without instances that the switch lists beside those with instances
MAX_COUNTED = 5_000  # instances of one version that are compared where no counter has them


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Holds one version. ``partial``: the number is a lower bound."""

    version: int
    instances: int
    current: bool = False
    partial: bool = False


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
    def partial(self) -> bool:
        return any(row.partial for row in self.others)

    @property
    def several(self) -> bool:
        return len(self.rows) > 1

    def switch(self, chosen: int | None = None) -> list[VersionCount]:
        """List those to choose from: with instances, the newest, the current and the chosen one."""
        newest = {row.version for row in self.rows[:NEWEST]} | {self.current, chosen}
        return [row for row in self.rows if row.instances or row.version in newest]


def count_versions(engine: RedactedEngine, machine: str, live: Live) -> VersionCounts:
    """Count the instances of each version. Raise UnknownMachine."""
    if live.versions is None:  # a worker counts those of the release before
        return _look(engine, machine, live)
    counted = {int(number): count for number, count in live.versions.items()}
    return arrange(live, sorted({*engine.versions(machine), *counted}, reverse=True), counted)


def count_known(live: Live) -> VersionCounts:
    """Count the instances of the versions that have any, without asking for more; none while they are not counted."""
    counted = {int(number): count for number, count in (live.versions or {}).items()}
    return arrange(live, sorted({live.version, *counted}, reverse=True), counted)


def _look(engine: RedactedEngine, machine: str, live: Live) -> VersionCounts:
    """Count by looking at some instances of each version."""
    numbers = sorted(engine.versions(machine), reverse=True)
    if len(numbers) == 1 or not live.total:
        return arrange(live, numbers, dict.fromkeys(numbers[:1], live.total))
    tallies = {number: engine.tally(machine, version=number, most=MAX_COUNTED) for number in numbers}
    partial = [number for number, tally in tallies.items() if not tally.complete]
    return arrange(live, numbers, {number: tally.total for number, tally in tallies.items()}, partial)


def arrange(live: Live, numbers: Iterable[int], found: Mapping[int, int], partial: Iterable[int] = ()) -> VersionCounts:
    rows = (VersionCount(n, found.get(n, 0), n == live.version, n in partial) for n in numbers)
    return VersionCounts(live.version, tuple(rows))


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
