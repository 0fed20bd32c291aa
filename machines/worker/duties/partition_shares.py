"""Which partitions this worker looks after: live workers divide them among themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from machines.engine import Engine
from machines.engine.jobs.wakeups import Shares

Partitions = dict[str, tuple[str, int]]  # root -> machine, number


class PartitionShares:
    """The partitions of all machines, and those that are this worker's.

    A worker that dies is out of the division seven seconds later, and others have its partitions. For that moment, and
    while workers come and go, two may look after one partition, or none: so what is done there must be safe to do
    twice, and each worker slowly looks at what others should have done.
    """

    EVERY = 2.5  # seconds between two signs of life

    def __init__(
        self,
        engine: Engine,
        machines: Callable[[], Iterable[str]] | None = None,
        worker: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Share partitions. ``worker``: its id; "" for one that has all partitions and joins no division."""
        self._engine = engine
        self._machines = machines or engine.machines
        self._worker = worker
        self._clock = clock
        self._shares = Shares(worker)
        self._joined = -float("inf")
        self._names: list[str] | None = None
        self.all: Partitions = {}
        self.own: Partitions = {}

    def refresh(self) -> bool:
        """Give a sign of life when it is time, and see which machines there are; return whether the partitions changed.
        Raises EngineUnavailable."""
        changed = False
        if self._worker and self._clock() - self._joined >= self.EVERY:
            changed = self._shares.update(self._engine.wakeups.join(self._worker))
            self._joined = self._clock()
        names = sorted(self._machines())
        if names != self._names:
            self.all, changed = self._engine.wakeups.roots(names), True
            self._names = names
        if changed:
            self.own = {root: where for root, where in self.all.items() if self._shares.owns(root)}
        return changed

    def pause(self) -> float:
        """Return seconds until the next sign of life is due."""
        return max(0.0, self._joined + self.EVERY - self._clock()) if self._worker else self.EVERY

    def leave(self) -> None:
        """Let others have the partitions at once."""
        if self._worker:
            self._engine.wakeups.leave(self._worker)
