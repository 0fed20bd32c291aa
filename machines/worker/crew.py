"""The threads that run handlers, and the loop that runs the coroutines among them."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import Counter

from django.db import close_old_connections

from machines.worker.hand import Hand
from machines.worker.job import Job
from machines.worker.processor import Processor

log = logging.getLogger(__name__)


class Loop:
    """An event loop in a thread of its own: coroutines of all handlers share it."""

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


class Crew:
    """As many threads as the hand has room. They are daemons: a handler that never ends cannot hold up an exit."""

    def __init__(self, processor: Processor, hand: Hand) -> None:
        self._processor = processor
        self._hand = hand
        self.outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"handler-{number}", daemon=True)
            for number in range(1, hand.size + 1)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def give(self, job: Job) -> None:
        self._jobs.put(job)

    def stop(self) -> None:
        """Threads end after the job they are at; nobody waits for one that is stuck."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            close_old_connections()
            try:
                self._note(self._processor.process(job))
            except Exception:
                log.exception("%s: the worker itself failed; the job comes back when its lease ends", job)
            finally:
                close_old_connections()
                self._hand.lay_down(job)

    def _note(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1
