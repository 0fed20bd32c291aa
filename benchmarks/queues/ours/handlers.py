"""The handler that every job of ours runs: it notes that it started, and sleeps the ms it was told to."""

from __future__ import annotations

import os
import time

from benchmarks.queues.peers import stamps
from machines.worker import Job, handler


@handler("noop")
def noop(job: Job) -> None:
    """A bare job is told by its input, one of a machine by the data of its instance."""
    given = job.input or job.data
    if given.get("pause"):
        stamps.note(stamps.SLOW)
        time.sleep(given["pause"] / 1000)
    else:
        stamps.note(given.get("sent", 0))


@handler("wait")
def wait(job: Job) -> None:
    """Notes the ns from the enqueueing call to this moment, in a file of this process."""
    waited = time.monotonic_ns() - job.input["sent"]
    with open(os.environ["BENCH_WAITS"], "a") as file:
        file.write(f"{waited}\n")
