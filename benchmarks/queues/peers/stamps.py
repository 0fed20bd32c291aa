"""What the jobs of a benchmark leave behind: when each of them started, and what the worker's CPU spent.

Imported by every worker written in Python, in whichever virtual environment it runs: the standard library only.
``BENCH_STAMPS`` is the file to write when ``BENCH_JOBS`` jobs have started: 64-bit integers, first the ns of CPU spent
in this process when a tenth of the jobs had started and when the last one did, then two for each job: the ns of the
system's monotonic clock at its start, and what ``note`` was given.
"""

from __future__ import annotations

import itertools
import os
import time
from array import array

SLOW = -1  # what a slow job notes


class Stamps:
    """Safe to share between threads. An array, because a million tuples would keep the garbage collector busy."""

    def __init__(self, path: str, jobs: int) -> None:
        self._path = path
        self._last = jobs - 1
        self._warm = jobs // 10
        self._cpu = 0
        self._pairs = array("q")
        self._numbers = itertools.count()

    def note(self, sent: int = 0) -> None:
        """A job starts. ``sent``: ns when it was enqueued, 0 when that is not asked, or ``SLOW``."""
        self._pairs.extend((time.monotonic_ns(), sent))
        number = next(self._numbers)  # after the moment is kept: who draws the last number finds all of them
        if number == self._warm:
            self._cpu = time.process_time_ns()
        if number == self._last:
            self._write()

    def _write(self) -> None:
        unfinished = f"{self._path}.part"
        with open(unfinished, "wb") as file:
            array("q", (self._cpu, time.process_time_ns())).tofile(file)
            self._pairs.tofile(file)
        os.replace(unfinished, self._path)


stamps = Stamps(os.environ.get("BENCH_STAMPS", ""), int(os.environ.get("BENCH_JOBS", "0")))
note = stamps.note


def noop(sent: int = 0, seconds: float = 0) -> None:
    """Note that this job starts; the slow one sleeps."""
    note(SLOW if seconds else sent)
    if seconds:
        time.sleep(seconds)
