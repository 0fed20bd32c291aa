"""Computes the pauses between reconnection attempts while Redis is away."""

from __future__ import annotations

import random

FIRST = 0.05  # seconds


class Backoff:
    """Doubling pauses up to ``most`` seconds, with jitter so that workers do not come back in step."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._pause = min(FIRST, most)

    def next(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, self._most)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311  spreading load, not a secret

    def reset(self) -> None:
        self._pause = min(FIRST, self._most)
