"""Jobs that one call of a handler runs together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from machines.engine import errors
from machines.worker.job import HandBack, Job
from machines.worker.registry import Handler


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
