"""The loop that runs coroutines: one thread for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from functools import partial

from machines.worker.hand import Hand
from machines.worker.job import Job
from machines.worker.processor import Processor
from machines.worker.registry import Handler

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
    """As many at a time as the hand has room; the others wait in line.

    What it keeps is touched by the loop's thread only, but for the line, whose ends may be taken from anywhere."""

    def __init__(self, processor: Processor, hand: Hand) -> None:
        self._processor = processor
        self._most = hand.size
        self._loop = Loop()
        self._line: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def give(self, work: list[Work]) -> None:
        self._line.extend(work)
        self._loop.loop.call_soon_threadsafe(self._fill)

    def waiting(self) -> int:
        return len(self._line)

    def take_back(self, keep: int) -> list[Job]:
        """The jobs nobody has begun with, but for the ``keep`` that come first."""
        taken: list[Job] = []
        while len(self._line) > keep:
            try:
                taken.append(self._line.pop()[1])
            except IndexError:
                break
        return taken

    def _fill(self) -> None:
        while len(self._tasks) < self._most:
            try:
                handler, job = self._line.popleft()
            except IndexError:
                return
            task = self._loop.loop.create_task(self._processor.process_async(handler, job))
            self._tasks.add(task)
            task.add_done_callback(partial(self._over, job))
            job.on_loss(partial(self._loop.loop.call_soon_threadsafe, task.cancel))

    def _over(self, job: Job, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not job.ended:  # cancelled before its first step
            self._processor.never_begun(job)
        if self._line:
            self._fill()
