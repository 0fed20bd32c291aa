"""The subscriber connection to one server: receives pulses and messages, and notices when the connection is half
open.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from dashboard.live.limits import Limits
from machines.engine.keys import Partition

ENDED = "the subscriber connection ended"


class Subscriber:
    """``ring`` is called with a partition's root when it may have changed, and with "" when the connection ended;
    ``published`` when a message on ``channel``, if the server has it, announced a published definition."""

    def __init__(
        self, client: Redis, limits: Limits, ring: Callable[[str], None], published: Callable[[], None], channel: str
    ) -> None:
        self._limits = limits
        self._ring = ring
        self._published = published
        self.channel = channel
        self._channel = channel.encode()
        self._client: Any = client
        self._pubsub = self._client.pubsub()
        self._listening: asyncio.Task[None] | None = None
        self._pongs: dict[bytes, asyncio.Future[None]] = {}
        self._tokens = itertools.count(1)
        self._roots: dict[bytes, str] = {}  # channel -> root
        self.run_id = ""
        #: whether the server rings at all; if not, only reconciling shows changes
        self.hints = False

    async def open(self) -> Self:
        await self._pubsub.connect()
        self._listening = asyncio.create_task(self._listen(), name="live listener")
        if self._channel and await self._may_hear(self._channel):
            await self._pubsub.ssubscribe(self._channel)
        await self.probe()
        return self

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        try:
            await self._pubsub.aclose()
        finally:  # closing one may take longer than its timeout
            await self._client.aclose()

    def check(self) -> None:
        """Raise what ended the listening, if anything has."""
        if self._listening is not None and self._listening.done():
            self._listening.result()
            raise RedisConnectionError(ENDED)

    async def probe(self) -> None:
        """Ask for a sign of life, within the deadline; renew ``run_id`` and ``hints``."""
        await self._ping()
        self.run_id = str((await self._client.info("server"))["run_id"])
        self.hints = await self._ask_for_hints() or self.hints

    async def listen_to(self, roots: Iterable[str]) -> None:
        """Listen to exactly these partitions from now on; when it returns, every later ring is heard."""
        db = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        wanted = {name_channel(db, Partition(root).pulse).encode(): root for root in roots}
        new, old = wanted.keys() - self._roots.keys(), self._roots.keys() - wanted.keys()
        self._roots = wanted
        if old:
            await self._pubsub.unsubscribe(*old)
        if new:
            await self._pubsub.subscribe(*new)
            await self._ping()
        self._ring_all(wanted[name] for name in new)

    async def _ask_for_hints(self) -> bool:
        try:
            flags = (await self._client.config_get(SETTING)).get(SETTING) or ""
            if not sufficient(flags):
                await self._client.config_set(SETTING, add_missing(flags))
                self._ring_all(self._roots.values())
        except ResponseError:
            return False
        return True

    async def _may_hear(self, channel: bytes) -> bool:
        """Return whether the account may listen to a channel. It tries on a connection of its own, since a refusal
        would end the listening."""
        pubsub = self._client.pubsub()
        try:
            await pubsub.ssubscribe(channel)
            return await pubsub.get_message(timeout=self._limits.deadline) is not None
        except ResponseError:
            return False
        finally:
            await pubsub.aclose()

    def _ring_all(self, roots: Iterable[str]) -> None:
        """Ring every root: a pulse that nobody heard may be under way when listening begins, and the silent steps after
        it do not ring."""
        for root in roots:
            self._ring(root)

    async def _ping(self) -> None:
        """Send a PING and wait for its answer. A half-open connection takes the PING and never answers."""
        self.check()
        token = str(next(self._tokens)).encode()
        pong = self._pongs[token] = asyncio.get_running_loop().create_future()
        try:
            await self._pubsub.ping(token)
            async with asyncio.timeout(
                self._limits.deadline
            ):  # not wait_for, which loses a cancellation in Python 3.11
                await pong
        finally:
            del self._pongs[token]

    async def _listen(self) -> None:
        """Run until the connection ends. A pending ping fails with the reason."""
        try:
            while True:
                message = await self._pubsub.get_message(timeout=None)
                if message is not None:
                    self._hear(message)
        except Exception as error:
            for pong in self._pongs.values():
                if not pong.done():
                    refused = isinstance(error, ResponseError)  # such as a missing permission
                    pong.set_exception(error if refused else RedisConnectionError(f"{ENDED}: {error!r}"))
            raise
        finally:
            self._ring("")

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "message" and (root := self._roots.get(message["channel"])):
            self.hints = True
            self._ring(root)
        elif message["type"] == "smessage":
            self._published()
        elif message["type"] == "sunsubscribe":
            raise RedisConnectionError("the channel of definitions has moved to another server")
        elif message["type"] == "pong" and (pong := self._pongs.get(message["data"])) and not pong.done():
            pong.set_result(None)


SETTING = "notify-keyspace-events"
NEEDED = "K$"
#: what the letter A stands for, in every version this runs on
ALL = "g$lshzxetd"


def sufficient(flags: str) -> bool:
    """Return whether pulses are heard with these flags."""
    return "K" in flags and ("$" in flags or "A" in flags)


def add_missing(flags: str) -> str:
    """Return the same flags, with those that are needed."""
    return flags if sufficient(flags) else flags + "".join(flag for flag in NEEDED if flag not in flags)


def name_channel(db: int, key: str) -> str:
    """Return the exact channel of one key; never a pattern, which Redis would match with every other channel's
    message."""
    return f"__keyspace@{db}__:{key}"
