"""Figures of a queue: its jobs by place, its throughput and times, its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Pause, QueueStats, rates
from machines.statistics.series import histogram

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
