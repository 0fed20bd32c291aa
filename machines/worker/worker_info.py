"""Builds the info row of this worker process for the workers page."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from machines.engine import WorkerInfo
from machines.engine.jobs.records import describe_lacking

from .execution.bundles import Unit
from .execution.completer import Counters
from .execution.in_flight import InFlightJobs
from .intake.served_queues import ServedQueues
from .job import Job

MOST_SHOWN = 20  # jobs
STATM = Path("/proc/self/statm")


class InfoBuilder:
    """Makes the worker's row as it is now. Times are ms of wall clock; the engine turns them into the server's."""

    def __init__(
        self,
        id: str,
        served_queues: ServedQueues,
        in_flight: InFlightJobs,
        *,
        version: str,
        counters: Counters | None = None,
        status: Callable[[], str] = lambda: "working",
        find_blocker: Callable[[], Unit | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._id = id
        self._served_queues = served_queues
        self._in_flight = in_flight
        self._counters = counters or Counters()
        self._status = status
        self._find_blocker = find_blocker
        self._version = version
        self._clock = clock
        self._born = time.monotonic()
        self._described: tuple[object, object, tuple[list[str], dict[str, list[str]], str]] | None = None

    def now(self) -> WorkerInfo:
        seen = int(self._clock() * 1000)
        queues, lacking, note = self._describe_queues()
        return WorkerInfo(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=queues,
            in_hand=len(self._in_flight),
            started=seen - int((time.monotonic() - self._born) * 1000),
            seen=seen,
            version=self._version,
            note=note,
            status=self._status(),
            memory=memory(),
            concurrency=self._in_flight.size,
            holding=[_describe_job(job, since) for job, since in self._in_flight.running()[:MOST_SHOWN]],
            done=self._counters.done,
            failed=self._counters.failed,
            lacking=lacking,
            hanging=self._list_hanging(),
        )

    def _describe_queues(self) -> tuple[list[str], dict[str, list[str]], str]:
        """Return the queues that are served, queue -> handlers that are missing here, and a note of these. Both lists
        are made anew when a machine is published, so that the same lists have the same texts."""
        served, missing = self._served_queues.served, self._served_queues.missing
        if self._described is None or self._described[0] is not served or self._described[1] is not missing:
            lacking = {str(route): sorted(names) for route, names in missing.items()}
            texts = [str(route) for route in served], lacking, describe_lacking(lacking)
            self._described = served, missing, texts
        return self._described[2]

    def _list_hanging(self) -> dict[str, list[str]]:
        """Return queue -> the handlers of its jobs that do not end, and the one that blocks the event loop."""
        blocker = self._find_blocker()
        found: dict[str, set[str]] = {}
        for job in [*self._in_flight.stuck, *([blocker] if blocker else [])]:
            found.setdefault(f"{job.machine}/{job.queue}", set()).add(job.src)
        return {route: sorted(names) for route, names in sorted(found.items())}


def _describe_job(job: Job, since: int) -> dict[str, object]:
    return {
        "id": job.id,
        "machine": job.machine,
        "queue": job.queue,
        "src": job.src,
        "instance": job.instance,
        "attempt": job.attempt,
        "since": since,
    }


def memory() -> int:
    """Return bytes of memory this process occupies; 0 where the system does not say (it is not Linux)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
