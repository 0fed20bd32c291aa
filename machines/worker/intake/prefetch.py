"""Computes how many jobs to take ahead of those that run."""

from __future__ import annotations

import time
from collections.abc import Callable

WINDOW = 0.02  # seconds over which the pace is taken: some round trips
AHEAD = 0.05  # seconds of work that may wait here: enough to bridge a round trip on a busy server
MOST = 500


class Prefetch:
    """A job that waits in this worker's line is one no other worker can take. So by default only as many are taken
    ahead as this worker has lately finished in a twentieth of a second: hundreds where they are tiny, none where each
    takes a while.
    """

    def __init__(self, fixed: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._fixed = fixed
        self._clock = clock
        self._at = clock()
        self._ended = 0
        self._ahead = 0

    def ahead(self, ended: int) -> int:
        """Compute how many jobs to take ahead. ``ended``: how many handlers have ended so far."""
        if self._fixed is not None:
            return self._fixed
        now = self._clock()
        if (passed := now - self._at) >= WINDOW:
            self._ahead = min(MOST, int((ended - self._ended) / passed * AHEAD))
            self._at, self._ended = now, ended
        return self._ahead
