"""Tells the stand-in what this worker holds, so that it can renew the leases when the heartbeat cannot."""

from __future__ import annotations

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

from machines.engine import Engine
from machines.worker import standin
from machines.worker.hand import Hand
from machines.worker.job import Job

log = logging.getLogger(__name__)

ROOM = 256 * 1024  # bytes of the pipe: two thousand jobs in one line
MOST_ADDED = 2000  # jobs told of one batch after the other, before all in hand are told anew: most are over by then
RESTART = 5.0  # seconds between two starts: one that cannot live must not keep the heartbeat busy


class Relay:
    """Starts the stand-in, and again when it dies. Nobody waits for it: what it does not read in time is dropped."""

    def __init__(self, engine: Engine, hand: Hand, clock: Callable[[], float] = time.monotonic) -> None:
        self._reach = _reach(engine)
        self._hand = hand
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._rest = b""  # of a line the pipe had no room for
        self._due = -float("inf")
        self._added = 0
        self._idle = True  # it was told that there is nothing in hand
        self._over = self._reach is None or not standin.possible()

    @property
    def pid(self) -> int | None:
        """The stand-in's process id; None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        with self._lock:
            self._start()

    def beat(self) -> None:
        """The leases in hand have just been renewed."""
        with self._lock:
            self._look()
            if not self._idle or len(self._hand):
                self._tell_all(beat=True)

    def taken(self, jobs: Iterable[Job]) -> None:
        """These are in hand from now on; to be said before they are given to anybody."""
        with self._lock:
            found = list(jobs)
            self._added += len(found)
            if self._added > MOST_ADDED:
                self._tell_all(beat=False)
            else:
                self._put({"held": _lots(found), "whole": False, "beat": False})
            self._idle = False

    def stop(self) -> None:
        """It holds nothing that could be lost, so it ends without being asked."""
        with self._lock:
            self._over = True
            if self._process is not None:
                self._process.kill()
            self._forget()

    def _tell_all(self, *, beat: bool) -> None:
        held = self._hand.held()  # under the lock: a batch that is told later was not in hand yet
        if self._put({"held": _lots(held), "whole": True, "beat": beat}):
            self._added, self._idle = 0, not held

    def _look(self) -> None:
        if self._process is not None and (code := self._process.poll()) is not None:
            log.warning("the stand-in of the heartbeat ended with %s; another takes its place", code)
            self._forget()
        if self._process is None:
            self._start()

    def _start(self) -> None:
        now = self._clock()
        if self._over or now < self._due:
            return
        self._due, self._idle = now + RESTART, False
        try:
            # As a script, away from the terminal's signals: see there.
            command = [sys.executable, "-P", standin.__file__, str(os.getpid())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0, bufsize=0
            )
        except (OSError, ValueError) as error:
            log.warning("the heartbeat has no stand-in: %s", error)
            return
        assert self._process.stdin is not None
        self._pipe, self._rest = self._process.stdin.fileno(), b""
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, ROOM)
        self._put(self._reach)

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process, self._pipe, self._rest = None, -1, b""

    def _put(self, word: Any) -> bool:
        """Writes a line, or none of it where the one before has not gone through; says whether it will arrive."""
        if self._pipe < 0 or not self._flush():
            return False
        line = json.dumps(word, separators=(",", ":")).encode() + b"\n"
        if len(line) > standin.MOST_LINE:
            return False
        self._rest = line
        self._flush()
        return True

    def _flush(self) -> bool:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._pipe, self._rest) :]
        except OSError:
            return False  # full, or its reader is dead: that is seen at the next beat
        return True


def _lots(jobs: Iterable[Job]) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """By what one call renews."""
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for job in jobs:
        taken = job.taken
        found.setdefault((taken.root, taken.lease), []).append((taken.id, taken.token))
    return [(root, lease, pairs) for (root, lease), pairs in found.items()]


def _reach(engine: Engine) -> dict[str, Any] | None:
    """What it takes to make the same engine elsewhere; None where that cannot be said in JSON."""
    if engine.source is None:
        return None
    url, options = engine.source
    reach = {"path": sys.path, "url": url, "prefix": engine.keys.prefix, "options": options}
    try:
        json.dumps(reach)
    except (TypeError, ValueError):
        return None
    return reach
