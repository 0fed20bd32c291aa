"""Runs coroutine handlers on one event loop in one thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from machines.worker.registry import Handler

from . import database_connections
from .bundles import Unit
from .in_flight import InFlightJobs
from .threads import WaitingLine, Work

log = logging.getLogger(__name__)

MOMENT = 1.0  # seconds that a coroutine may take to end after it was cancelled
LAG = 0.25  # seconds without an answer after which the loop counts as blocked
PROBE = 1.0  # seconds between two questions to a loop that answers
HOPELESS = 60.0  # seconds without an answer after which a coroutine past its deadline is taken never to end


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="coroutines", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self._wind_up())
            self.loop.close()

    async def _wind_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()


class Coroutines:
    """As many at a time as the hand has room; the others wait in line. One that goes on past its job's deadline, though
    it was cancelled, is left behind and gives its place to another. ``on_exhausted`` is called when too many are, and
    when one past its deadline keeps the loop from answering.

    What it keeps is touched by the loop's thread only, but for the line, which any thread may take from, and the
    time of the question that the loop has not answered, which the thread that takes jobs sets."""

    def __init__(
        self,
        process: Callable[[Handler, Unit], Coroutine[Any, Any, None]],
        abandon_unstarted: Callable[[Unit], None],
        in_flight: InFlightJobs,
        on_exhausted: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._abandon_unstarted = abandon_unstarted
        self._on_exhausted = on_exhausted
        self._clock = clock
        self._asked: float | None = None  # since when the loop owes an answer
        self._answered = -float("inf")
        self._most = in_flight.size
        self._loop = Loop()
        self._line = WaitingLine()
        self._in_flight = in_flight
        self._at: dict[Unit, asyncio.Task[None]] = {}
        self._left: set[Unit] = set()
        self._tidying: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def give(self, work: list[Work]) -> None:
        self._line.put(work)
        self._ask()

    def waiting(self) -> int:
        return len(self._line)

    def take_back(self, keep: int) -> list[Unit]:
        """Give back the jobs nobody has begun with, but for ``keep`` of them: those of higher priority stay."""
        taken: list[Unit] = []
        while len(self._line) > keep:
            try:
                taken.append(self._line.pop_last()[1])
            except IndexError:
                break
        return taken

    # Whether the loop answers

    @property
    def is_blocked(self) -> bool:
        """Whether the loop has not answered for too long: a coroutine computes, or waits without `await`."""
        asked = self._asked
        return asked is not None and self._clock() - asked >= LAG

    def find_blocker(self) -> Unit | None:
        """Return the job whose coroutine blocks the loop, where that is known."""
        if not self.is_blocked:
            return None
        with contextlib.suppress(Exception):  # another thread's current task: each Python has its own way to keep it
            task = asyncio.current_task(self._loop.loop)
            return next((unit for unit, each in list(self._at.items()) if each is task), None)
        return None

    def probe(self) -> float | None:
        """Ask the loop for an answer where coroutines are at work or wait. Return seconds after which to look again;
        None where there is nothing to look for."""
        now, asked = self._clock(), self._asked
        if asked is None:
            rests = 0.0 if self._line else self._answered + PROBE - now
            if not self._at and not self._line:
                return None
            if rests > 0:
                return rests
            self._ask()
            return LAG
        if now - asked < LAG:
            return asked + LAG - now
        late = [unit for unit in list(self._at) if unit.expired]
        for unit in late:
            self._in_flight.stuck.add(unit)
            if unit not in self._at:  # it ended meanwhile
                self._in_flight.stuck.discard(unit)
        if late and now - asked >= HOPELESS:
            self._on_exhausted()
        return LAG

    def _ask(self) -> None:
        if self._asked is None:
            self._asked = self._clock()
        self._loop.loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._asked, self._answered = None, self._clock()
        self._fill()

    def leave_behind(self, unit: Unit) -> None:
        """Leave a cancelled coroutine behind whose deadline is over."""
        loop = self._loop.loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(loop.call_later, MOMENT, self._leave, unit)

    def _leave(self, unit: Unit) -> None:
        if unit not in self._at:
            return
        self._in_flight.stuck.add(unit)
        if len(self._left) >= self._in_flight.most_stuck:
            self._on_exhausted()
            return
        self._left.add(unit)
        self._in_flight.release(unit)
        self._fill()

    def _fill(self) -> None:
        while len(self._at) - len(self._left) < self._most:
            try:
                handler, unit = self._line.pop()
            except IndexError:
                return
            task = self._loop.loop.create_task(self._process(handler, unit))
            self._at[unit] = task
            task.add_done_callback(partial(self._finish, unit))
            unit.on_loss(partial(self._loop.loop.call_soon_threadsafe, task.cancel))

    def _finish(self, unit: Unit, task: asyncio.Task[None]) -> None:
        del self._at[unit]
        self._left.discard(unit)
        self._in_flight.stuck.discard(unit)
        if not unit.ended:  # cancelled before its first step
            self._abandon_unstarted(unit)
        if database_connections.was_used():
            self._tidy()
        if self._line:
            self._fill()

    def _tidy(self) -> None:
        """Close connections without anybody waiting: queries that come now are done after it, by the same thread."""
        if self._tidying is None or self._tidying.done():
            alone = not self._at and not self._line
            self._tidying = self._loop.loop.create_task(database_connections.tidy_for_coroutines(alone))
