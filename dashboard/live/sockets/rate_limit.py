"""Limits the commands of a socket with a token bucket."""

from __future__ import annotations

import time
from collections.abc import Callable


class CommandRateLimit:
    """Holds ``capacity`` at first and at most; ``refill`` comes back each second."""

    def __init__(self, capacity: float, refill: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._refill = refill
        self._clock = clock
        self._left = capacity
        self._seen = clock()

    def spend(self, cost: float) -> bool:
        """Take the cost; return False when there was not enough, and then nothing is left."""
        now = self._clock()
        self._left = min(self._capacity, self._left + (now - self._seen) * self._refill)
        self._seen = now
        enough = self._left >= cost
        self._left = max(0.0, self._left - cost)
        return enough
