"""Watches the deadlines of attempts."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterable

from machines.worker.job import Job

LEAD = 0.05  # seconds before the deadline that it is acted upon, so that the job is still this worker's when it says so
SHARE = 0.1  # of the time allowed, where that is less


class Deadlines:
    """Calls ``overdue`` for each job whose time is up. Its thread starts with the first job that has a deadline."""

    def __init__(self, overdue: Callable[[Job], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._overdue = overdue
        self._clock = clock
        self._heap: list[tuple[float, int, Job]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def watch(self, jobs: Iterable[Job]) -> None:
        limited = [(job.ends, job) for job in jobs if job.ends is not None]
        if not limited:
            return
        with self._changed:
            for ends, job in limited:
                lead = min(LEAD, job.taken.timeout / 1000 * SHARE)
                heapq.heappush(self._heap, (ends - lead, next(self._numbers), job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._due()
                if not due:
                    if self._stopped:
                        return
                    self._changed.wait(self._heap[0][0] - self._clock() if self._heap else None)
            for job in due:
                self._overdue(job)

    def _due(self) -> list[Job]:
        due, now = [], self._clock()
        while self._heap and (self._heap[0][0] <= now or self._heap[0][2].ended):
            job = heapq.heappop(self._heap)[2]
            if not job.ended:
                due.append(job)
        return due
