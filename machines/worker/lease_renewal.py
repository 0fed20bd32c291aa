"""Renews the leases of running jobs, writes the worker's info row, and reads orders."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from machines.engine import Engine, WorkerInfo, errors
from machines.engine.jobs.records import describe_lacking

from .execution.completer import Counters
from .execution.in_flight import InFlightJobs, Unit
from .intake.served_queues import ServedQueues
from .job import Job

MOST_SHOWN = 20  # jobs
STATM = Path("/proc/self/statm")
ROW_EVERY = 5.0  # seconds: the engine forgets a worker after three times that
MOST = 1000  # leases of one call


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
    ) -> None:
        self._id = id
        self._served_queues = served_queues
        self._in_flight = in_flight
        self._counters = counters or Counters()
        self._status = status
        self._find_blocker = find_blocker
        self._version = version
        self._born = time.monotonic()
        self._described: tuple[object, object, tuple[list[str], dict[str, list[str]], str]] | None = None

    def now(self) -> WorkerInfo:
        seen = int(time.time() * 1000)
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

    def run_once(self) -> bool:
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
