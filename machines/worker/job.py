"""What a handler is given: the job in hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from machines.engine import Job as TakenJob
from machines.engine import errors


class Job:
    """One job while this worker holds it.

    A job is delivered at least once: a worker may die after the work and before saying so. Work that
    must not happen twice carries ``key``, which is the same for every attempt of this job.
    """

    def __init__(self, taken: TakenJob) -> None:
        self.taken = taken
        self.id = taken.id
        self.machine = taken.machine
        self.queue = taken.queue
        self.src = taken.src
        self.instance = taken.instance
        self.data: dict[str, Any] = taken.data or {}
        self.input: Any = taken.input
        self.attempt = taken.attempt
        self.attempts = taken.attempts
        self._lost = threading.Event()
        self._why = ""
        self._on_loss: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"{self.machine}/{self.queue} {self.id} ({self.src} for {self.instance})"

    @property
    def key(self) -> str:
        """The idempotency key of this job: unique to it, equal for all its attempts."""
        return self.taken.key

    @property
    def actor(self) -> str:
        """Who to name in the history of what the handler fires itself."""
        return f"job {self.taken.key}"

    @property
    def lost(self) -> bool:
        """True once the job is no longer this worker's: withdrawn, taken back or handed back."""
        return self._lost.is_set()

    def check(self) -> None:
        """Raises ``LeaseLost`` if the job is lost. A long handler calls it between its steps."""
        if self._lost.is_set():
            raise errors.LeaseLost(self.id, why=self._why)

    def wait(self, seconds: float) -> None:
        """Sleeps, and raises ``LeaseLost`` at once if the job is lost meanwhile.

        For plain functions. A coroutine awaits ``asyncio.sleep`` and is cancelled when its job is lost.
        """
        self._lost.wait(max(seconds, 0.0))
        self.check()

    def lose(self, why: str) -> None:
        """Said by the worker, once: the job is gone. Runs what ``on_loss`` left."""
        with self._lock:
            if self._lost.is_set():
                return
            self._why = why
            self._lost.set()
            calls, self._on_loss = self._on_loss, []
        for call in calls:
            call()

    def on_loss(self, call: Callable[[], object]) -> None:
        """Has ``call`` run when the job is lost, or now if it already is."""
        with self._lock:
            if not self._lost.is_set():
                self._on_loss.append(call)
                return
        call()
