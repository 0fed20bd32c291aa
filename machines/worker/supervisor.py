"""Runs several worker processes: starts them together, replaces one that dies, stops them together."""

import logging
import os
import queue
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from machines.conf.server.guardian import on_parent_death

from .options import EXHAUSTED
from .reconnect import Backoff

log = logging.getLogger(__name__)

STEADY = 10.0  # seconds a worker has to live for its death to count as a single one
MOST_PAUSE = 5.0  # seconds before one that dies again and again is started
LATE = 15.0  # seconds past its grace that a worker may take to stop before it is killed
LOOK = 1.0  # seconds at most between two looks at the workers: a signal may be missed, a child must not
PASSED_ON = {signal.SIGTERM: signal.SIGTERM, signal.SIGINT: signal.SIGTERM, signal.SIGUSR1: signal.SIGUSR1}


class Child:
    """One of the places: the process in it, and when to start the next one there."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._backoff = Backoff(MOST_PAUSE)
        self.process: subprocess.Popen[bytes] | None = None
        self.began = self.due = clock()
        self.over = False  # it ended by itself, with nothing wrong: on request, or its work was done

    def start(self, command: Sequence[str], descriptors: Sequence[int] = ()) -> None:
        # In a group of its own: a Ctrl-C in the terminal is the supervisor's to pass on, once.
        self.process = subprocess.Popen(
            command, process_group=0, preexec_fn=_dies_with(os.getpid()), pass_fds=descriptors
        )
        self.began = self._clock()

    def read_exit_code(self) -> int | None:
        """Return the exit code of a process that has ended since the last look; notes when to start another."""
        if self.process is None or (code := self.process.poll()) is None:
            return None
        self.process, now = None, self._clock()
        if now - self.began >= STEADY:
            self._backoff.reset()
        self.over, self.due = code == 0, now + self._backoff.next()
        return code


class Supervisor:
    """Has one thread and starts its children from it, so that the kernel tells them when it is gone, however it ends:
    they then stop as after a TERM. A second TERM, and any other signal a worker knows, is passed on like the first.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        *,
        grace: float,
        clock: Callable[[], float] = time.monotonic,
        descriptors: Sequence[int] = (),
        what: str = "workers",
    ) -> None:
        """Supervise children. ``grace``: seconds that children may take to stop; ``descriptors``: open files that they
        inherit; ``what`` they are, for messages."""
        self._command = command
        self._descriptors = descriptors
        self._what = what
        self._grace = grace
        self._clock = clock
        self._children = [Child(clock) for _ in range(count)]
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stopping: float | None = None  # since when

    def run(self, out: TextIO) -> int:
        """Run until all have ended by themselves, or a signal ended them. Return the exit code: 0 when theirs were,
        else 1."""
        for number in (*PASSED_ON, signal.SIGTSTP, signal.SIGCHLD):
            signal.signal(number, lambda given, _: self._signals.put(given))
        out.write(f"supervisor {os.getpid()}: {len(self._children)} {self._what}\n")
        out.flush()
        failed = False
        while True:
            failed = self._look(failed)
            if self._has_ended():
                return 1 if failed else 0
            self._wait()

    def _has_ended(self) -> bool:
        if any(child.process is not None for child in self._children):
            return False
        return self._stopping is not None or all(child.over for child in self._children)

    def _look(self, failed: bool) -> bool:
        """Note who ended and start whom it is time for; says whether any has ended badly while stopping."""
        now = self._clock()
        for child in self._children:
            if (code := child.read_exit_code()) is not None and not self._has_ended_well(code):
                log.warning(
                    "one of the %s ended with %s%s",
                    self._what,
                    code,
                    "" if self._stopping else "; another takes its place",
                )
                failed = failed or self._stopping is not None
            if self._stopping is None:
                if child.process is None and not child.over and now >= child.due:
                    child.start(self._command, self._descriptors)
            elif child.process is not None and now - self._stopping > self._grace + LATE:
                log.error("process %d does not stop: killed", child.process.pid)
                child.process.kill()
        return failed

    def _has_ended_well(self, code: int) -> bool:
        """Tell whether a child ended in order. A worker that gets the signal before it listens for it ends by it, and
        has no jobs. One that is exhausted was ending already."""
        return code == 0 or (self._stopping is not None and code in (-signal.SIGTERM, EXHAUSTED))

    def _wait(self) -> None:
        due = [child.due - self._clock() for child in self._children if child.process is None and not child.over]
        try:
            self._receive(self._signals.get(timeout=min([LOOK, *(max(seconds, 0.01) for seconds in due)])))
        except queue.Empty:
            return

    def _receive(self, number: int) -> None:
        if number == signal.SIGCHLD:
            return
        if number in (signal.SIGTERM, signal.SIGINT) and self._stopping is None:
            self._stopping = self._clock()
        for child in self._children:
            if child.process is not None:
                child.process.send_signal(PASSED_ON.get(signal.Signals(number), signal.SIGUSR1))


def _dies_with(parent: int) -> Callable[[], None]:
    def ask() -> None:
        on_parent_death(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)  # it died before the kernel could be asked

    return ask
