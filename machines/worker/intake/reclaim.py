"""Finds jobs that were leased to this worker in a call whose answer was lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from machines.engine import Engine, Job, errors

from .served_queues import ServedQueue

log = logging.getLogger(__name__)

PAGE = 200
MOST = 5_000  # leased jobs of one queue that are looked at: what lies behind comes back when its lease ends


class Reclaim:
    """A take whose answer never came may have happened: its jobs are leased to a worker that does not know of them, and
    would lie there until their leases end. To be called by the thread that takes, so that none is under way.
    """

    def __init__(self, engine: Engine, worker: str, holds: Callable[[str, str], bool]) -> None:
        """Reclaim jobs. ``holds(machine, id)``: whether the job is in flight here."""
        self._engine = engine
        self._worker = worker
        self._holds = holds

    def once(self, served_queues: Iterable[ServedQueue]) -> int:
        """Hand such jobs back, their attempt not counted; how many."""
        found = 0
        for route in served_queues:
            try:
                found += self._of(route)
            except errors.EngineUnavailable:
                raise
            except errors.SignalboxError as error:
                log.warning("the leased jobs of %s cannot be looked at: %s", route, error)
        if found:
            log.warning("%d jobs were leased to this worker without its knowledge: handed back", found)
        return found

    def _is_unknown(self, job: Job) -> bool:
        """Tell whether the job is leased to this worker and nobody knows of it. Its lease was never renewed then: one
        that was belongs to another queue, to which a handler handed the job."""
        if job.worker != self._worker or self._holds(job.machine, job.id):
            return False
        return job.lease_until <= job.taken + job.lease

    def _of(self, route: ServedQueue) -> int:
        lost = []
        for offset in range(0, MOST, PAGE):
            page = self._engine.jobs(*route, place="leased", limit=PAGE, offset=offset)
            lost += [job for job in page if self._is_unknown(job)]
            if len(page) < PAGE:
                break
        found = 0
        for job in lost:
            try:
                self._engine.hand_back(job)
                found += 1
            except errors.LeaseLost:
                continue  # it ended meanwhile
        return found
