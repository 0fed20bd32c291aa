"""Signs of life: leases are extended, and the worker's row says that it lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from machines.engine import Engine, WorkerRow, errors
from machines.worker.hand import Hand
from machines.worker.job import Job
from machines.worker.row import Row

ROW_EVERY = 5.0  # seconds: the engine forgets a worker after three times that


class Heartbeat:
    """Beats in a thread of its own, so that no handler can hold it up."""

    def __init__(
        self, engine: Engine, hand: Hand, row: Row, *, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._hand = hand
        self._row = row
        self._pause = pause
        self._clock = clock
        self._written = -float("inf")
        self._shown: WorkerRow | None = None

    def once(self) -> bool:
        """Extends every lease by its full length and keeps the row fresh. There is never more to do at once: False."""
        failed = None
        for (_, lease), jobs in groupby(sorted(self._hand.held(), key=_together), key=_together):
            try:
                self._extend(list(jobs), lease)
            except errors.SignalboxError as error:
                failed = error  # one partition that cannot be reached must not cost the jobs of the others
        self._show()
        if failed is not None:
            raise failed
        return False

    def _extend(self, jobs: list[Job], lease: int) -> None:
        for job, ours in zip(jobs, self._engine.extend([job.taken for job in jobs], lease), strict=True):
            if not ours:
                job.lose("it was withdrawn, taken back or finished by another")

    def _show(self) -> None:
        """Writes the row when it changed, or would soon be forgotten."""
        now, row = self._clock(), self._row.now()
        facts = replace(row, seen=0)
        if facts != self._shown or now - self._written >= ROW_EVERY:
            self._engine.beat(row)
            self._shown, self._written = facts, now

    def pause(self) -> float:
        """Seconds to the next beat: a third of the shortest lease in hand, so that two beats may fail."""
        shortest = min((_lease(job) / 3000 for job in self._hand.held()), default=self._pause)
        return min(self._pause, shortest)


def _lease(job: Job) -> int:
    return job.taken.lease


def _together(job: Job) -> tuple[str, int]:
    """Jobs that one call extends: those of one partition, with one lease."""
    return job.taken.root, job.taken.lease
