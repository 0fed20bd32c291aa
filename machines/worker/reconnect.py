"""What a worker does while Redis is away: closes stale connections, and waits longer after each attempt."""

import random

import redis

from machines.engine import Engine

FIRST = 0.05  # seconds


def forget_connections(engine: Engine) -> None:
    """Drop those nobody uses right now: they may lead to a server that is gone, or no longer takes writes, and each
    that is tried would cost its whole timeout, one after the other."""
    if isinstance(engine.client, redis.Redis):
        engine.client.connection_pool.disconnect(inuse_connections=False)


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
