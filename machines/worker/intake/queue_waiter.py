"""Waits for new jobs while this worker is idle: a blocking pop on the bells of its queues."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import redis

from machines.engine import Engine, errors

LEAST = 0.01  # seconds: to Redis, 0 is for ever
POLL = 0.25  # seconds between two looks where no bell can be heard
TRIES, PAUSE = 100, 0.01  # to end a wait that may not have reached the server yet; seconds between two


class QueueWaiter:
    """Blocks on the bell lists of queues, on a connection of its own.

    A ring says "look at this queue" and carries no work: losing one delays a job until the next
    look, never loses it. The connection's socket timeout is above the block time, so that a healthy
    wait is never cut, and a half-open connection is noticed soon after.
    """

    MARGIN = 3.0  # seconds of socket timeout above the block time

    def __init__(self, engine: Engine, block: float) -> None:
        self._engine = engine
        self._block = block
        # One wait cannot span the slots of a cluster: there the fetcher looks into its queues instead.
        self.hears = isinstance(engine.client, redis.Redis)
        self._client = _own_connection(engine.client, block + self.MARGIN) if self.hears else None
        self._id: int | None = None
        self._interrupted = threading.Event()
        self._waiting = False

    def wait(self, bells: Sequence[str], most: float | None = None) -> str | None:
        """The bell that rang, or None after the block time, or ``most`` seconds. Raises ``EngineUnavailable``."""
        block = self._block if most is None else max(min(most, self._block), LEAST)
        if self._client is None:
            self._interrupted.wait(min(block, POLL))
            return None
        if not bells or self._interrupted.is_set():
            self._interrupted.wait(block)
            return None
        try:
            if self._id is None:
                self._id = self._client.client_id()
            self._waiting = True
            if self._interrupted.is_set():
                return None  # said before there was anything to end
            with self._punctual(block if block < self._block else None):
                rung = self._client.blpop(list(bells), timeout=block)
        except (redis.RedisError, OSError) as error:
            self._id = None
            self._client.connection_pool.disconnect()
            raise errors.EngineUnavailable(f"the doorbell's connection is gone: {error}") from error
        finally:
            self._waiting = False
        if rung is None:
            return None
        bell = rung[0]
        return bell.decode() if isinstance(bell, bytes) else bell

    @contextlib.contextmanager
    def _punctual(self, seconds: float | None) -> Iterator[None]:
        """Ends a short wait on time: servers end a blocking pop up to 100 ms late, which a queue's rate would feel."""
        if seconds is None:
            yield
            return
        timer = threading.Timer(seconds, self._unblock)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _unblock(self) -> None:
        """A wait that is over by itself meanwhile, or another one that is ended for it, does no harm."""
        with contextlib.suppress(redis.RedisError, OSError):
            if self._waiting and self._id is not None:
                self._engine.client.client_unblock(self._id)

    def interrupt(self) -> None:
        """Ends all waiting, also one going on in another thread. Should that fail, the block time ends it."""
        self._interrupted.set()
        with contextlib.suppress(redis.RedisError, OSError):
            for _ in range(TRIES):
                if not self._waiting or self._id is None or self._engine.client.client_unblock(self._id):
                    return
                time.sleep(PAUSE)  # its command is still on the way

    def listen(self) -> None:
        """There may be waiting again."""
        self._interrupted.clear()

    def pass_on(self, bells: Sequence[str]) -> None:
        """Rings these for another worker: this one heard them and is not going to look."""
        if self._client is not None and bells:
            with contextlib.suppress(redis.RedisError, OSError):
                pipeline = self._engine.client.pipeline(transaction=False)
                for bell in bells:
                    pipeline.lpush(bell, "1")
                pipeline.execute(raise_on_error=False)

    def close(self) -> None:
        if self._client is not None:
            self._client.connection_pool.disconnect()  # a client that was given its pool leaves it open


def _own_connection(client: redis.Redis, socket_timeout: float) -> redis.Redis:
    """A client to where ``client`` goes, with one connection and a socket timeout (seconds) of its own."""
    pool = client.connection_pool
    settings = pool.connection_kwargs | {"socket_timeout": socket_timeout}
    return redis.Redis(
        connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, max_connections=1, **settings)
    )
