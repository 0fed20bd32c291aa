"""Measures how long an operation took without the time that the thread spent on other work."""

from __future__ import annotations

import time
from collections.abc import Callable


class ThreadTime:
    """Begins when it is made. A loop that sends to a thousand sockets while it awaits an answer is not kept waiting by
    whoever gives that answer."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, busy: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._busy = clock, busy
        self._began, self._worked = clock(), busy()

    def seconds(self, spare: float) -> float:
        """Since then; of the work of this thread up to ``spare`` seconds are not counted."""
        worked = max(0.0, self._busy() - self._worked)
        return max(0.0, self._clock() - self._began - min(worked, spare))
