"""The hub's two connections to Redis: one hears hints, one reads. Any failure of either ends both.

A link is used until its first error and then thrown away: what was missed in between is read anew by the next one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from dashboard.live import notifications, reading
from dashboard.live.limits import Limits
from dashboard.live.sources import Source, World
from machines.engine import library
from machines.engine.client import options
from machines.engine.keys import Keys, Partition

log = logging.getLogger(__name__)


class Link:
    """``ring`` is called with a partition's root whenever it may have changed."""

    def __init__(self, url: str, keys: Keys, limits: Limits, ring: Callable[[str], None]) -> None:
        self._keys = keys
        self._limits = limits
        self._ring = ring
        self._client = _client(url, limits)
        # RESP2 and bytes: its messages then come in one shape, a PONG included, which redis-py cannot read as text.
        self._ears = _client(url, limits, protocol=2, decode_responses=False)
        self._pubsub = self._ears.pubsub()
        self._listening: asyncio.Task[None] | None = None
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._tokens = itertools.count(1)
        self._roots: dict[str, str] = {}  # channel -> root
        self.run_id = ""
        #: whether the server rings at all; if not, only reconciling shows changes
        self.hints = False

    async def open(self) -> Self:
        """Connects both ways. Raises a RedisError or OSError."""
        await self._pubsub.connect()
        self._listening = asyncio.create_task(self._listen(), name="live listener")
        await self.probe()
        return self

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._pubsub.aclose()
        await self._ears.aclose()
        await self._client.aclose()

    def check(self) -> None:
        """Raises what ended the listening, if anything has."""
        if self._listening is not None and self._listening.done():
            self._listening.result()
            raise RedisConnectionError("the subscriber connection ended")

    async def probe(self) -> None:
        """Asks both connections for a sign of life, within the deadline; renews ``run_id`` and ``hints``."""
        await self._ping()
        self.run_id = str((await self._client.info("server"))["run_id"])
        self.hints = await self._ask_for_hints() or self.hints

    async def _ask_for_hints(self) -> bool:
        try:
            flags = (await self._client.config_get(notifications.SETTING)).get(notifications.SETTING) or ""
            if not notifications.sufficient(flags):
                await self._client.config_set(notifications.SETTING, notifications.merged(flags))
                self._ring_all(self._roots.values())
        except ResponseError:
            return False
        return True

    async def listen_to(self, roots: set[str]) -> None:
        """Exactly these partitions from now on; when it returns, every later ring is heard."""
        db = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        wanted = {notifications.channel(db, Partition(root).pulse): root for root in roots}
        new, old = wanted.keys() - self._roots.keys(), self._roots.keys() - wanted.keys()
        self._roots = wanted
        if old:
            await self._pubsub.unsubscribe(*old)
        if new:
            await self._pubsub.subscribe(*new)
            await self._ping()
        self._ring_all(wanted[name] for name in new)

    def _ring_all(self, roots: Iterable[str]) -> None:
        """A pulse nobody heard may be under way when listening begins, and the steps in its shadow do not ring."""
        for root in roots:
            self._ring(root)

    async def read(self, wanted: Sequence[Source]) -> World:
        """The sources as they are now, in pipelines of bounded size."""
        seen = World()
        for part in _parts(wanted, self._limits.pipeline):
            latest = await self._read(part)
            seen = World(latest.directory, seen.readings | latest.readings, latest.at)
        return seen

    async def _read(self, wanted: Sequence[Source]) -> World:
        try:
            return reading.take_in(wanted, await self._send(wanted))
        except reading.LibraryMissing:
            await self._client.function_load(library.text(), replace=True)
            return reading.take_in(wanted, await self._send(wanted))

    async def _send(self, wanted: Sequence[Source]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for command in reading.commands(self._keys, wanted):
            pipeline.execute_command(*command)
        return list(await pipeline.execute(raise_on_error=False))

    async def _ping(self) -> None:
        """A half-open connection takes the PING and never answers."""
        self.check()
        token = str(next(self._tokens))
        pong = self._pongs[token] = asyncio.get_running_loop().create_future()
        try:
            await self._pubsub.ping(token)
            await asyncio.wait_for(pong, self._limits.deadline)
        finally:
            del self._pongs[token]

    async def _listen(self) -> None:
        """Until the connection ends; whoever waits for a sign of life is told why there will be none."""
        try:
            while True:
                message = await self._pubsub.get_message(timeout=None)
                if message is not None:
                    self._hear(message)
        except Exception as error:
            for pong in self._pongs.values():
                if not pong.done():
                    pong.set_exception(RedisConnectionError(f"the subscriber connection ended: {error!r}"))
            raise
        finally:
            self._ring("")

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "message" and (root := self._roots.get(message["channel"].decode())):
            self.hints = True
            self._ring(root)
        elif message["type"] == "pong" and (pong := self._pongs.get(message["data"].decode())) and not pong.done():
            pong.set_result(None)


def _client(url: str, limits: Limits, **more: Any) -> Redis:
    settings = options(
        retry=Retry(NoBackoff(), 0),
        socket_timeout=limits.deadline,
        socket_connect_timeout=limits.deadline,
        health_check_interval=0,
        max_connections=4,
        **more,
    )
    if not url.startswith("unix"):
        settings["socket_keepalive"] = True
    return Redis.from_url(url, **settings)


def _parts(wanted: Sequence[Source], size: int) -> list[Sequence[Source]]:
    """At least one, so that the clock and the directory are read when nothing else is."""
    return [wanted[start : start + size] for start in range(0, max(len(wanted), 1), size)]
