"""The jobs that this worker has taken and not yet reported, and those of them that one call of a handler runs."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from machines.engine import errors
from machines.worker.job import HandBack, Job
from machines.worker.registry import Handler

MOST_STUCK = 20  # handlers that may be left behind, at least as many as work


class Bundle:
    """Jobs of one queue for one call of their handler. It takes up the room of one job, and each of its jobs has a
    lease, a deadline and an end of its own."""

    __slots__ = ("jobs", "machine", "queue", "src")

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.machine, self.queue, self.src = jobs[0].machine, jobs[0].queue, jobs[0].src
        for job in jobs:
            job.join(self, jobs[0])

    def __str__(self) -> str:
        return f"{len(self.jobs)} jobs of {self.machine}/{self.queue} ({self.src})"

    @property
    def ended(self) -> bool:
        return all(job.ended for job in self.jobs)

    @property
    def expired(self) -> bool:
        return all(job.expired for job in self.jobs)

    @property
    def is_over(self) -> bool:
        """Whether nothing that the handler does can count any more."""
        return all(job.ended or job.cancelled for job in self.jobs)

    def on_loss(self, call: Callable[[], object]) -> None:
        """Run ``call`` when the last of the jobs is lost or expires."""
        for job in self.jobs:
            job.on_loss(lambda: call() if self.is_over else None)


Unit = Job | Bundle
"""What one call of a handler runs."""


def list_jobs(unit: Unit) -> list[Job]:
    return unit.jobs if isinstance(unit, Bundle) else [unit]


def split_jobs(jobs: Sequence[Job], most: int) -> list[Bundle]:
    """Split jobs of one handler into bundles, by machine and queue. A job that was tried before is alone: it may be the
    one that fails or kills whatever runs beside it."""
    found: list[Bundle] = [Bundle([job]) for job in jobs if job.attempt > 1]
    queues: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        if job.attempt == 1:
            queues.setdefault((job.machine, job.queue), []).append(job)
    return [
        *(Bundle(each[start : start + most]) for each in queues.values() for start in range(0, len(each), most)),
        *found,
    ]


def read_outcomes(handler: Handler, jobs: Sequence[Job], found: Any) -> list[Any]:
    """Return the outcome of each job: a result, or an exception. ``found``: what the handler returned, None for jobs
    that are all done. Raises TypeError for anything but a list with as many outcomes as jobs."""
    if found is None:
        return [None] * len(jobs)
    if not isinstance(found, list | tuple) or len(found) != len(jobs):
        what = f"{len(found)} outcomes" if isinstance(found, list | tuple) else f"a {type(found).__name__}"
        raise TypeError(f"the handler {handler.where} returned {what} for {len(jobs)} jobs, not a list of as many")
    return list(found)


def share_error(jobs: Sequence[Job], error: BaseException) -> list[BaseException]:
    """Return the outcome of each job after a call that raised. The loss of one job ends no attempt of the others."""
    if isinstance(error, errors.LeaseLost) and error.job in {job.id for job in jobs}:
        return [error if job.id == error.job else HandBack(0) for job in jobs]
    return [error] * len(jobs)


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
