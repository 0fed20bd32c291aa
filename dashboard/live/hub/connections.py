"""The hub's connections to Redis: one that reads, and one subscriber for each server. A failure of one closes them all.

A link is used until its first error and then thrown away: what was missed in between is read anew by the next one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from redis.exceptions import ConnectionError as RedisConnectionError

from dashboard.live.limits import Limits
from machines.engine import Engine
from machines.engine.jobs.ready_queues import DEFINITIONS
from machines.engine.keys import Keys
from machines.engine.pattern_keys import PatternKeys

from . import reading
from .clients import client, server_of, servers
from .sources import Source, World
from .subscriber import Subscriber


class HubConnections:
    """``ring`` is called with a partition's root whenever it may have changed, ``published`` when a definition was
    published."""

    def __init__(
        self, url: str, keys: Keys, limits: Limits, ring: Callable[[str], None], published: Callable[[], None]
    ) -> None:
        self._url = url
        self._keys = keys
        self._limits = limits
        self._ring = ring
        self._published = published
        self._client: Any = client(url, limits)
        self._servers: Mapping[str, str] = {}
        self._ears: dict[str, Subscriber] = {}

    async def open(self) -> Self:
        """Connects everywhere. Raises a RedisError or OSError."""
        self._servers = await servers(self._client, self._url)
        channel = PatternKeys(self._keys.prefix).topic(DEFINITIONS).channel
        place = server_of(self._client, channel)
        for name, url in self._servers.items():
            heard = channel if name == place else ""
            ears = self._ears[name] = Subscriber(url, self._limits, self._ring, self._published, heard)
            await ears.open()
        return self

    async def close(self) -> None:
        for ears in self._ears.values():
            await ears.close()
        await self._client.aclose()

    @property
    def run_id(self) -> str:
        """Names the servers as they are now: another one after a restart or a failover."""
        return " ".join(ears.run_id for ears in self._ears.values())

    @property
    def hints(self) -> bool:
        """Whether every server rings; if not, only reconciling shows all changes."""
        return all(ears.hints for ears in self._ears.values())

    def check(self) -> None:
        """Raises what ended the listening, if anything has."""
        for ears in self._ears.values():
            ears.check()

    async def probe(self) -> None:
        """Asks every connection for a sign of life, within the deadline."""
        if await servers(self._client, self._url) != self._servers:
            raise RedisConnectionError("the cluster has other primaries now")
        for ears in self._ears.values():
            await ears.probe()

    async def listen_to(self, roots: set[str]) -> None:
        """Exactly these partitions from now on; when it returns, every later ring is heard."""
        placed: dict[str, list[str]] = defaultdict(list)
        for root in roots:
            placed[server_of(self._client, root)].append(root)
        for name, ears in self._ears.items():
            await ears.listen_to(placed[name])

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
            await asyncio.to_thread(self._load_library)
            return reading.take_in(wanted, await self._send(wanted))

    def _load_library(self) -> None:
        """Load the library by the rules of the engine, which never puts an older one over a newer one."""
        engine = Engine.from_url(self._url, prefix=self._keys.prefix)
        try:
            engine.load_missing_library()
        finally:
            engine.client.close()

    async def _send(self, wanted: Sequence[Source]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for command in reading.commands(self._keys, wanted):
            pipeline.execute_command(*command)
        return list(await pipeline.execute(raise_on_error=False))


def _parts(wanted: Sequence[Source], size: int) -> list[Sequence[Source]]:
    """At least one, so that the clock and the directory are read when nothing else is."""
    return [wanted[start : start + size] for start in range(0, max(len(wanted), 1), size)]
