"""How much work each queue holds, how fast it goes, and what holds it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Pause, QueueStats, rates
from machines.statistics import histogram

PLACES = ("ready", "leased", "delayed", "dead")


@dataclass(frozen=True, slots=True)
class Depth:
    """``ready`` waits for a worker, ``leased`` is in a worker's hands, ``delayed`` waits for its next attempt,
    ``dead`` is out of attempts and waits for a person."""

    machine: str
    queue: str
    ready: int
    leased: int
    delayed: int
    dead: int

    @property
    def route(self) -> str:
        """``machine/queue``: how the live topic and a worker's row name it."""
        return f"{self.machine}/{self.queue}"

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(place, getattr(self, place)) for place in PLACES]


def depths_of(machine: str, queues: Mapping[str, Mapping[str, int]]) -> list[Depth]:
    """From the engine's ``{queue: {place: n}}``, in its order."""
    return [Depth(machine, queue, *(int(held.get(place, 0)) for place in PLACES)) for queue, held in queues.items()]


@dataclass(frozen=True, slots=True)
class Figures:
    """One queue with everything the engine counts about it. ``recent``: what statistics have counted of it in the last
    hour. Times in ms; None where nothing was counted."""

    machine: str
    stats: QueueStats
    recent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> Depth:
        return depths_of(self.machine, {self.queue: self.stats.depth})[0]

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
        """Jobs that left the queue for good: what goes out, as ``enqueued`` is what comes in."""
        return self.stats.completed + self.stats.withdrawn + self.stats.purged

    @property
    def wait(self) -> tuple[float | None, float | None]:
        """Half of the jobs of the last hour, and 95 in 100, waited less than this until a worker took them."""
        return _middle_and_slow(histogram(self.recent.get("waits", {})))

    @property
    def run(self) -> tuple[float | None, float | None]:
        """The same of the time from taken to completed."""
        return _middle_and_slow(histogram(self.recent.get("runs", {})))

    @property
    def held_back(self) -> bool:
        return self.stats.concurrency is not None or bool(self.stats.rate)


def _middle_and_slow(counted: Mapping[int, int]) -> tuple[float | None, float | None]:
    return rates.estimate_quantile(counted, 0.5), rates.estimate_quantile(counted, 0.95)
