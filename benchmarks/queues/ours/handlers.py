"""The handler that every job of ours runs: it notes that it started, and sleeps the ms it was told to."""

from __future__ import annotations

from benchmarks.queues.peers import stamps
from machines.worker import Job, handler


@handler("noop")
def noop(job: Job) -> None:
    """A bare job is told by its input, one of a machine by the data of its instance."""
    given = job.input or job.data
    stamps.noop(given.get("sent", 0), given.get("pause", 0) / 1000)
