"""Tells the lease helper which jobs this worker has in flight, so that it can renew their leases."""

import contextlib
import fcntl
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import lease_helper
from .execution.in_flight import InFlightJobs
from .job import Job

log = logging.getLogger(__name__)

ROOM = 256 * 1024  # bytes of the pipe: two thousand jobs in one line
MOST_ADDED = 2000  # jobs sent batch by batch, before all in flight are sent anew: most have ended by then
RESTART = 5.0  # seconds between two starts: a helper that cannot live must not keep the heartbeat busy
END = 2.0  # seconds that a killed helper may take to go


class HelperProcess:
    """Starts the helper with the first job, and again when it dies. The worker never waits for it: what it does not
    read in time is dropped."""

    def __init__(
        self, url: str, prefix: str, in_flight: InFlightJobs, limit: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare the helper. ``url``: of Redis; ``limit``: seconds for which a silent worker's leases are renewed.
        Without either there is no helper."""
        self._reach = {"path": sys.path, "url": url, "prefix": prefix}
        self._in_flight = in_flight
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._remaining = b""  # of a line the pipe had no room for
        self._due = -float("inf")
        self._added = 0
        self._idle = True  # it knows that nothing is in flight
        self._stopped = not (url and limit and lease_helper.is_possible())

    @property
    def pid(self) -> int | None:
        """The helper's process id; None while there is none."""
        return None if self._process is None else self._process.pid

    def beat(self) -> None:
        """Say that the leases in flight have just been renewed."""
        if self._stopped:
            return
        with self._lock:
            self._look()
            if not self._idle or len(self._in_flight):
                self._send_all(beat=True)

    def add(self, jobs: Iterable[Job]) -> None:
        """Say that these jobs are in flight from now on: before any of them is begun."""
        if self._stopped:
            return
        with self._lock:
            if self._process is None:
                self._start()
            found = list(jobs)
            self._added += len(found)
            if self._added > MOST_ADDED:
                self._send_all(beat=False)
            else:
                self._put({"held": _group(found), "whole": False, "beat": False})
            self._idle = False

    def stop(self) -> None:
        """End the helper. It holds nothing that could be lost."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
            self._forget()

    def _send_all(self, *, beat: bool) -> None:
        held = self._in_flight.list_held()  # under the lock: a batch that is added later was not in flight yet
        if self._put({"held": _group(held), "whole": True, "beat": beat}):
            self._added, self._idle = 0, not held

    def _look(self) -> None:
        if self._process is not None and (code := self._process.poll()) is not None:
            log.warning("the lease helper ended with %s; another takes its place", code)
            self._forget()
        if self._process is None and len(self._in_flight):
            self._start()

    def _start(self) -> None:
        now = self._clock()
        if self._stopped or now < self._due:
            return
        self._due, self._idle = now + RESTART, False
        # It inherits no descriptor but its end of the pipe. The worker's output would stay open with it.
        command = [sys.executable, "-P", lease_helper.__file__, str(os.getpid()), str(self._limit)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            log.warning("there is no lease helper: %s", error)
            return
        assert self._process.stdin is not None
        self._pipe, self._remaining = self._process.stdin.fileno(), b""
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, ROOM)
        self._put(self._reach)

    def _forget(self) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END)
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process, self._pipe, self._remaining = None, -1, b""

    def _put(self, word: Any) -> bool:
        """Write a line, or none of it where the one before has not arrived; return whether it will arrive."""
        if self._pipe < 0 or not self._flush():
            return False
        line = json.dumps(word, separators=(",", ":")).encode() + b"\n"
        if len(line) > lease_helper.MOST_LINE:
            return False
        self._remaining = line
        self._flush()
        return True

    def _flush(self) -> bool:
        try:
            while self._remaining:
                self._remaining = self._remaining[os.write(self._pipe, self._remaining) :]
        except OSError:
            return False  # full, or its reader is dead: that is seen at the next beat
        return True


def _group(jobs: Iterable[Job]) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Group jobs by partition and lease, as one call renews them."""
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for job in jobs:
        taken = job.taken
        found.setdefault((taken.root, taken.lease), []).append((taken.id, taken.token))
    return [(root, lease, pairs) for (root, lease), pairs in found.items()]
