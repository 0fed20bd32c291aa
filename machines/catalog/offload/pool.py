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
PATIENCE = 4.0  # seconds that one waits


class Pool:
    """Safe to share between threads. ``most``: helpers, of ``memory`` bytes each; the others as above."""

    def __init__(
        self, most: int = HELPERS, *, waiting: int = WAITING, patience: float = PATIENCE, memory: int = MEMORY
    ) -> None:
        self._most, self._waiting, self._patience, self._memory = most, waiting, patience, memory
        self.begin()

    def begin(self) -> None:
        """As a process begins: the helpers of a parent are its own."""
        self._changed = threading.Condition()
        self._at_it: set[str] = set()
        self._free: list[Helper] = []
        self._out = self._queued = 0

    def run(self, task: str, text: str | bytes, *, who: str, cpu: float, **words: Any) -> Done:
        """``who``: whose task it is, "" for nobody's; ``cpu``: seconds of processor time that it may take; ``words``:
        its parameters. Raises AtOnce, NoHelper, Overrun.
        """
        with self.turn(who), self.helper() as helper:
            return helper.do(task, text, words, cpu)

    @contextmanager
    def turn(self, who: str) -> Iterator[None]:
        """Nothing else of theirs begins meanwhile. Raises AtOnce."""
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
        """Of the helpers that are free."""
        with self._changed:
            free, self._free = self._free, []
        for helper in free:
            helper.end()

    @contextmanager
    def helper(self) -> Iterator[Helper]:
        """One that nobody else has meanwhile. Raises NoHelper."""
        helper = self._taken()
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

    def _taken(self) -> Helper | None:
        """One that is free, or None for one that is to be started. Raises NoHelper."""
        until = time.monotonic() + self._patience
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
