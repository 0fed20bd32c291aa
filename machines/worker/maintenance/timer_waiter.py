"""Waits until the next due time, or until a bell says that something is due earlier."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import redis

from machines.engine import Engine, errors


class TimerWaiter:
    """Listens for the clock bells of all machines, on a connection of its own.

    Servers end a blocking pop up to 100 ms late. So the pop stays under way while this side counts the time, over as
    many waits as it lasts. A ring says "look at the clock" and no more: losing one delays what is due by seconds.
    """

    BLOCK = 5.0  # seconds a pop lasts
    MARGIN = 5.0  # seconds without an answer after that: the connection is half open
    POLL = 0.25  # seconds: one pop cannot span the slots of a cluster; there the ticker looks this often
    SLICE = 0.25  # seconds between two looks whether to stop, and whether there are other machines now

    def __init__(
        self, engine: Engine, machines: Callable[[], Iterable[str]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine = engine
        self._machines = machines
        self._clock = clock
        self._heard: tuple[str, ...] = ()  # the machines whose bells are listened for
        self._bells: list[str] = []
        self._asked: float | None = None  # since when a pop is under way
        self._stopped = threading.Event()
        client = engine.client
        self._connection: redis.connection.AbstractConnection | None = None
        if isinstance(client, redis.Redis):
            pool = client.connection_pool
            self._connection = pool.connection_class(
                **pool.connection_kwargs | {"socket_timeout": self.BLOCK + self.MARGIN}
            )

    def wait(self, seconds: float) -> None:
        """Returns after ``seconds``, or as soon as a bell rings, other machines are there, or it is interrupted.

        Raises EngineUnavailable.
        """
        if self._connection is None:
            self._stopped.wait(min(seconds, self.POLL))
            return
        try:
            self._listen(self._connection, self._clock() + seconds)
        except (redis.RedisError, OSError) as error:
            self.close()
            raise errors.EngineUnavailable(f"the alarm's connection is gone: {error}") from error

    def interrupt(self) -> None:
        """Ends all waiting, also in another thread, within a moment."""
        self._stopped.set()

    def close(self) -> None:
        self._asked = None
        if self._connection is not None:
            self._connection.disconnect()

    def _listen(self, connection: redis.connection.AbstractConnection, until: float) -> None:
        while not self._stopped.is_set():
            if self._moved_house():
                return
            left = min(max(0.0, until - self._clock()), self.SLICE)
            if not self._bells:
                self._stopped.wait(left)
            elif self._rang(connection, left):
                return
            if self._clock() >= until:
                return

    def _moved_house(self) -> bool:
        """Are there other machines than those whose bells were listened for?"""
        machines = tuple(self._machines())
        if machines == self._heard:
            return False
        self.close()
        self._heard, self._bells = machines, self._engine.due_bells(machines)
        return True

    def _rang(self, connection: redis.connection.AbstractConnection, seconds: float) -> bool:
        if self._asked is None:
            connection.connect()
            connection.send_command("BLPOP", *self._bells, self.BLOCK, check_health=False)
            self._asked = self._clock()
        if connection.can_read(timeout=seconds):
            rung = connection.read_response()
            self._asked = None
            return rung is not None
        if self._clock() - self._asked > self.BLOCK + self.MARGIN:
            raise redis.TimeoutError("no answer")
        return False
