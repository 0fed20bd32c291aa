"""The methods of the engine about jobs and queues: those of ``lifecycle`` and ``queue_operations``, and what walks over
all of them."""

from __future__ import annotations

from collections.abc import Iterable

from machines.engine.keys import Keys
from machines.engine.records import PartialList

from .mending import MendReport, MendWalk, finish_walk
from .queue_operations import QueueMethods
from .ready_queues import ReadyQueues


class JobMethods(QueueMethods):
    """Jobs and queues: a part of ``Engine``."""

    _ready_queues: ReadyQueues
    keys: Keys

    def mend(self, machine: str, *, now: int | None = None) -> MendReport:
        """Put every job where its hash says it is, after keys were damaged from outside; return what was repaired.

        Reads the whole keyspace in small steps. A leased job without a lease gets one, which a live worker renews; a
        job past its deadline gets ten seconds at most and is then taken back like any other.
        """
        self._catalog.partitions(machine)  # raises when there is none
        return finish_walk(MendWalk(self._caller, self.keys, machine), now)

    def mending(self) -> MendWalk:
        """Return the same for all machines, step by step."""
        return MendWalk(self._caller, self.keys)

    def ready(self, queues: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """List those of the queues, (machine, queue), that hold ready jobs."""
        return list(self._ready_queues.find(queues))

    def ready_partitions(self, queues: Iterable[tuple[str, str]]) -> dict[tuple[str, str], set[int]]:
        """Return (machine, queue) -> the numbers of its partitions that hold ready jobs, for queues that have any."""
        return self._ready_queues.find(queues)

    def queue_names(self, machines: Iterable[str]) -> PartialList[tuple[str, str]]:
        """List (machine, queue) for every queue these machines ever had. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return self._ready_queues.list_queues(machines)
