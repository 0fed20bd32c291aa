"""The figures of all machines, queues and workers together, for the overview and the metrics."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from machines.engine.errors import SignalboxError
from machines.engine.jobs.records import QueueStats, WorkerInfo
from machines.engine.keys import get_machine
from machines.engine.records import Live


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of each machine and of its queues, by machine. ``faults``: machines that cannot be read, and why.
    ``missing``: roots of partitions that did not answer; the figures are those of the others. ``others``: machines that
    ``only`` left out. ``now``: ms by the server's clock, 0 for none. Where a survey was read with ``trust``, figures
    that did not change carry the ``now`` of their reading."""

    lives: dict[str, Live] = field(default_factory=dict)
    queues: dict[str, dict[str, QueueStats]] = field(default_factory=dict)
    faults: dict[str, SignalboxError] = field(default_factory=dict)
    workers: list[WorkerInfo] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    now: int = 0

    def only(self, names: Container[str]) -> Survey:
        """Return a copy with some machines only, and every worker."""
        return Survey(
            lives={name: live for name, live in self.lives.items() if name in names},
            queues={name: queues for name, queues in self.queues.items() if name in names},
            faults={name: fault for name, fault in self.faults.items() if name in names},
            workers=self.workers,
            others=self.others | {name for name in self.lives if name not in names},
            missing=tuple(root for root in self.missing if get_machine(root) in names),
            now=self.now,
        )
