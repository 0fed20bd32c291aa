"""Paces background work: by the time it takes of the server, and in passes of about a second."""

import time
from collections.abc import Callable, Iterator

SHARE = 0.1  # of one server's time
OVERHEAD = 1.5  # a call's whole time on the server by its measured one, which has no reading and writing of words
IDLE = 1.0  # seconds without a call after which what was not used is forfeited: no burst follows a rest
SPELL = 1.0  # seconds of one pass; where more is due the next one follows at once


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


class Walk:
    """Goes through an iterator in passes of about a second, each from where the one before stopped."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: Iterator[None] | None = None

    def go_on(self, begin: Callable[[], Iterator[None]]) -> bool:
        """Make one pass; tell whether there is more. ``begin``: called where nothing is left. After an error the next
        pass begins anew."""
        steps, self._left = self._left or begin(), None
        until = self._clock() + SPELL
        for _ in steps:
            if self._clock() >= until:
                self._left = steps
                return True
        return False
