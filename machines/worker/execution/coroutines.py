"""Runs coroutine handlers on one event loop in one thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from functools import partial

from machines.worker.job import Job
from machines.worker.registry import Handler

from . import database_connections
from .in_flight import InFlightJobs
from .processor import Processor

log = logging.getLogger(__name__)

MOMENT = 1.0  # seconds that a coroutine may take to end after it was cancelled

Work = tuple[Handler, Job]


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
    it was cancelled, is left behind and gives its place to another; when too many are, their places stay taken.

    What it keeps is touched by the loop's thread only, but for the line, whose ends may be taken from anywhere."""

    def __init__(self, processor: Processor, in_flight: InFlightJobs) -> None:
        self._processor = processor
        self._most = in_flight.size
        self._loop = Loop()
        self._poll_loop: deque[Work] = deque()
        self._in_flight = in_flight
        self._at: dict[Job, asyncio.Task[None]] = {}
        self._left: set[Job] = set()
        self._tidying: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def give(self, work: list[Work]) -> None:
        self._poll_loop.extend(work)
        self._loop.loop.call_soon_threadsafe(self._fill)

    def waiting(self) -> int:
        return len(self._poll_loop)

    def take_back(self, keep: int) -> list[Job]:
        """The jobs nobody has begun with, but for the ``keep`` that come first."""
        taken: list[Job] = []
        while len(self._poll_loop) > keep:
            try:
                taken.append(self._poll_loop.pop()[1])
            except IndexError:
                break
        return taken

    def leave_behind(self, job: Job) -> None:
        """The job's deadline is over, and it was cancelled: should it still be there in a moment, another takes its
        place."""
        loop = self._loop.loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(loop.call_later, MOMENT, self._leave, job)

    def _leave(self, job: Job) -> None:
        if job not in self._at:
            return
        self._in_flight.stuck.add(job)
        if len(self._left) >= self._in_flight.most_stuck:
            log.error("%s: %d coroutines go on past their deadlines; this one keeps its place", job, len(self._left))
            return
        self._left.add(job)
        self._in_flight.rest(job)
        self._fill()

    def _fill(self) -> None:
        while len(self._at) - len(self._left) < self._most:
            try:
                handler, job = self._poll_loop.popleft()
            except IndexError:
                return
            task = self._loop.loop.create_task(self._processor.process_async(handler, job))
            self._at[job] = task
            task.add_done_callback(partial(self._over, job))
            job.on_loss(partial(self._loop.loop.call_soon_threadsafe, task.cancel))

    def _over(self, job: Job, task: asyncio.Task[None]) -> None:
        del self._at[job]
        self._left.discard(job)
        self._in_flight.stuck.discard(job)
        if not job.ended:  # cancelled before its first step
            self._processor.never_begun(job)
        if database_connections.used():
            self._tidy()
        if self._poll_loop:
            self._fill()

    def _tidy(self) -> None:
        """Nobody waits for it: queries that come now are done after it, by the same thread."""
        if self._tidying is None or self._tidying.done():
            alone = not self._at and not self._poll_loop
            self._tidying = self._loop.loop.create_task(database_connections.tidy_for_coroutines(alone))
