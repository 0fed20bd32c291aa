"""Renews the leases of running jobs, writes the worker's info row, and reads orders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from machines.engine import Engine, WorkerInfo, errors

from .execution.in_flight import InFlightJobs
from .job import Job
from .worker_info import InfoBuilder

ROW_EVERY = 5.0  # seconds: the engine forgets a worker after three times that
MOST = 1000  # leases of one call


class LeaseRenewal:
    """Beats in a thread of its own, so that no handler can hold it up."""

    def __init__(
        self,
        engine: Engine,
        in_flight: InFlightJobs,
        info: InfoBuilder,
        *,
        pause: float,
        clock: Callable[[], float] = time.monotonic,
        on_order: Callable[[dict[str, Any]], None] = lambda order: None,
        on_renewed: Callable[[], object] = lambda: None,
    ) -> None:
        self._engine = engine
        self._in_flight = in_flight
        self._info = info
        self._pause = pause
        self._clock = clock
        self._on_order = on_order
        self._on_renewed = on_renewed
        self._obeyed: dict[str, Any] | None = None
        self._written = -float("inf")
        self._shown: WorkerInfo | None = None
        self._planned = pause

    def once(self) -> bool:
        """Extend every lease by its full length and keep the row fresh. There is never more to do at once: False."""
        failed = None
        for (_, lease), jobs in groupby(sorted(self._in_flight.list_held(), key=_batch_key), key=_batch_key):
            held = list(jobs)
            for start in range(0, len(held), MOST):
                try:
                    self._extend(held[start : start + MOST], lease)
                except errors.SignalboxError as error:
                    failed = error  # one partition that cannot be reached must not cost the jobs of the others
        if failed is None:
            self._on_renewed()
        self._show()
        if failed is not None:
            raise failed
        return False

    def _extend(self, jobs: Sequence[Job], lease: int) -> None:
        for job, why in zip(jobs, self._engine.renew([job.taken for job in jobs], lease), strict=True):
            if why:
                job.abandon(why)

    def _show(self) -> None:
        """Write the row when it changed, or would soon be forgotten, or an order may have come."""
        now, row = self._clock(), self._info.now()
        facts = replace(row, seen=0, started=0, memory=0)
        if facts != self._shown or now - self._written >= ROW_EVERY:
            order = self._engine.beat(row)
            self._shown, self._written = facts, now
            if order is not None and order != self._obeyed:
                self._obeyed = order
                self._on_order(order)

    def needs_earlier_beat(self, jobs: Sequence[Job]) -> bool:
        """Tell whether the leases of these jobs cannot wait for the beat that is planned."""
        return min(map(_lease, jobs)) / 3000 < self._planned

    def pause(self) -> float:
        """Return seconds to the next beat: a third of the shortest lease in flight, so that two beats may fail."""
        shortest = min((_lease(job) / 3000 for job in self._in_flight.list_held()), default=self._pause)
        self._planned = min(self._pause, shortest)
        return self._planned


def _lease(job: Job) -> int:
    return job.taken.lease


def _batch_key(job: Job) -> tuple[str, int]:
    """Return jobs that one call extends: those of one partition, with one lease."""
    return job.taken.root, job.taken.lease
