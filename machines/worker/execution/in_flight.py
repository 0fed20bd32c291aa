"""The jobs that this worker has taken and not yet reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from machines.worker.job import Job

from .bundles import Bundle, Unit

MOST_STUCK = 20  # handlers that may be left behind, at least as many as work


class InFlightJobs:
    """Shared by the threads of one worker: the executor lays down, the heartbeat reads, the launcher waits.

    A job is *open* from being picked up until its handler has ended: it takes up room until then. It stays in flight
    until Redis knows how it ended. Sets and dicts change in one step of the interpreter: only who waits takes
    a lock.
    """

    def __init__(self, size: int, clock: Callable[[], float] = time.time) -> None:
        self.size = size
        self.most_stuck = max(MOST_STUCK, size)
        self._clock = clock
        self._jobs: set[Job] = set()
        self._open: set[Unit] = set()
        self._running: dict[Job, float] = {}
        self._changed = threading.Condition()
        self._mark: int | None = None  # a thread waits for the number of open jobs to fall to this
        self._watched = False  # a thread waits until no job is in flight
        self.picked_up = 0
        self.stuck: set[Unit] = set()  # their deadline is over and their threads are still at it

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def ended(self) -> int:
        """How many handlers have ended here so far."""
        return self.picked_up - len(self._open)

    def list_held(self) -> list[Job]:
        """Return the jobs that are still ours."""
        return [job for job in list(self._jobs) if not job.lost]

    def holds(self, machine: str, id: str) -> bool:
        """Say whether the job is in flight, lost or not."""
        return any(job.id == id and job.machine == machine for job in list(self._jobs))

    def running(self) -> list[tuple[Job, int]]:
        """Return the jobs whose handlers run, oldest first, each with the ms since when."""
        return [(job, int(since * 1000)) for job, since in list(self._running.items())]

    def runs(self, job: Job) -> bool:
        return job in self._running

    def pick_up(self, jobs: list[Job]) -> None:
        self._jobs.update(jobs)
        self._open.update(jobs)
        self.picked_up += len(jobs)

    def bundle(self, bundle: Bundle) -> None:
        """Count the jobs of a bundle as one open job."""
        self._open.difference_update(bundle.jobs)
        self._open.add(bundle)
        self.picked_up -= len(bundle.jobs) - 1

    def begin(self, job: Job) -> None:
        """Note that the job's handler starts."""
        self._running[job] = self._clock()

    def release(self, unit: Unit) -> None:
        """Note that the handler has ended, or is no longer waited for: there is room for another job."""
        self._running.pop(unit, None)  # type: ignore[arg-type]
        self._open.discard(unit)
        mark = self._mark
        if mark is not None and len(self._open) <= mark:
            with self._changed:
                self._mark = None
                self._changed.notify_all()

    def lay_down(self, jobs: Iterable[Job]) -> None:
        """Remove finished jobs, with any outcome."""
        self._jobs.difference_update(jobs)
        if self._watched:
            with self._changed:
                self._changed.notify_all()

    def wait_room(self, ahead: int, seconds: float) -> int:
        """Wait until there is room for a job, or for half of those that are taken ahead; answers for how many."""
        limit = self.size + ahead
        mark = min(limit - 1, self.size + ahead // 2)
        if len(self._open) > mark:
            with self._changed:
                self._mark = mark  # before the look: who ends a job after it sees the mark
                self._changed.wait_for(lambda: len(self._open) <= mark, seconds)
                self._mark = None
        return max(limit - len(self._open), 0)

    def wait_empty(self, seconds: float) -> bool:
        with self._changed:
            self._watched = True
            empty = self._changed.wait_for(lambda: not self._jobs, seconds)
            self._watched = False
        return empty
