"""The jobs this worker has in hand right now."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from machines.worker.job import Job


class Hand:
    """Shared by the threads of one worker: the processor lays down, the heartbeat reads, the launcher waits.

    A job that was lost stays in hand until its handler has ended: until then it takes up room.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: set[Job] = set()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def free(self) -> int:
        return max(self.size - len(self._jobs), 0)

    def held(self) -> list[Job]:
        """The jobs that are still ours."""
        with self._changed:
            return [job for job in self._jobs if not job.lost]

    def pick_up(self, jobs: Iterable[Job]) -> None:
        with self._changed:
            self._jobs.update(jobs)

    def lay_down(self, job: Job) -> None:
        """The job is over here, whatever came of it."""
        with self._changed:
            self._jobs.discard(job)
            self._changed.notify_all()

    def wait_free(self, seconds: float) -> int:
        """Waits until there is room for a job; answers for how many (0 when the time is over)."""
        with self._changed:
            self._changed.wait_for(lambda: self.free > 0, seconds)
            return self.free

    def wait_empty(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs, seconds)
