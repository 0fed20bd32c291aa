"""Keeps background work within a share of the server's time: after each call it rests in proportion to what it took."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.1  # of one server's time
IDLE = 1.0  # seconds without a call after which what was not used is forfeited: no burst follows a rest


class ServerShare:
    """``spend`` takes the µs that a call took on the server and sleeps until the share is kept. A call that took 1 ms
    is followed by a rest of 9 ms, less what has passed since."""

    def __init__(
        self, share: float = SHARE, *, clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._share, self._clock, self._sleep = share, clock, sleep
        self._free = clock()  # when the next call may begin

    def spend(self, micros: int) -> None:
        now = self._clock()
        self._free = max(self._free, now - IDLE) + micros / 1e6 / self._share
        if self._free > now:
            self._sleep(self._free - now)
