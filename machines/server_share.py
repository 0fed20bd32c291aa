"""Paces background work by the time it takes of the server."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.1  # of one server's time
OVERHEAD = 1.5  # a call's whole time on the server by its measured one, which has no reading and writing of words
IDLE = 1.0  # seconds without a call after which what was not used is forfeited: no burst follows a rest


class ServerShare:
    """Keeps background work within a share of the server's time: ``spend`` takes the µs that were measured of a call
    and sleeps until the share is kept. From one call of 1 ms to the next 15 ms pass, work of the caller included."""

    def __init__(
        self, share: float = SHARE, *, clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._share, self._clock, self._sleep = share, clock, sleep
        self._free = clock()  # when the next call may begin

    def spend(self, micros: int) -> None:
        now = self._clock()
        self._free = max(self._free, now - IDLE) + micros * OVERHEAD / 1e6 / self._share
        if self._free > now:
            self._sleep(self._free - now)
