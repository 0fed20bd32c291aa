"""The pool of helper processes: started on demand, one task of each person at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import AtOnce, NoHelper
from .helper import MEMORY, Helper
from .tasks import Done

HELPERS = 2
WAITING = 6  # that wait for a helper; each is a thread of the site
MAX_WAIT = 4.0  # seconds that one waits


class Pool:
    """Safe to share between threads. ``most``: helpers, of ``memory`` bytes each; the others as above."""

    def __init__(
        self, most: int = HELPERS, *, waiting: int = WAITING, max_wait: float = MAX_WAIT, memory: int = MEMORY
    ) -> None:
        self._most, self._waiting, self._max_wait, self._memory = most, waiting, max_wait, memory
        self.begin()

    def begin(self) -> None:
        """Begin as a process: the helpers of a parent are its own."""
        self._changed = threading.Condition()
        self._at_it: set[str] = set()
        self._free: list[Helper] = []
        self._out = self._queued = 0

    def run(self, task: str, text: str | bytes, *, who: str, cpu: float, **words: Any) -> Done:
        """Run a task. ``who``: whose task it is, "" for nobody's; ``cpu``: seconds of processor time that it may take;
        ``words``: its parameters. Raises AtOnce, NoHelper, Overrun.
        """
        with self.turn(who), self.helper() as helper:
            return helper.do(task, text, words, cpu)

    @contextmanager
    def turn(self, who: str) -> Iterator[None]:
        """Let nothing else of the same person begin meanwhile. Raises AtOnce."""
        with self._changed:
            if who in self._at_it:
                raise AtOnce
            if who:
                self._at_it.add(who)
        try:
            yield
        finally:
            with self._changed:
                self._at_it.discard(who)

    def end(self) -> None:
        """End the helpers that are free."""
        with self._changed:
            free, self._free = self._free, []
        for helper in free:
            helper.end()

    @contextmanager
    def helper(self) -> Iterator[Helper]:
        """Lend a helper that nobody else has meanwhile. Raises NoHelper."""
        helper = self._take_free()
        try:
            if helper is not None and not helper.is_fit:
                helper.end()
                helper = None
            helper = helper or Helper(self._memory)
            yield helper
        finally:
            if helper is not None and not helper.is_fit:
                helper.end()
                helper = None
            with self._changed:
                self._out -= 1
                if helper is not None:
                    self._free.append(helper)
                self._changed.notify()

    def _take_free(self) -> Helper | None:
        """Take a helper that is free; None where one is to be started. Raises NoHelper."""
        until = time.monotonic() + self._max_wait
        with self._changed:
            if self._out >= self._most and self._queued >= self._waiting:
                raise NoHelper("too many wait already")
            self._queued += 1
            try:
                while self._out >= self._most:
                    if not self._changed.wait(max(0.0, until - time.monotonic())) and self._out >= self._most:
                        raise NoHelper("all helpers are busy")
            finally:
                self._queued -= 1
            self._out += 1
            return self._free.pop() if self._free else None


pool = Pool()
run = pool.run
os.register_at_fork(after_in_child=pool.begin)
