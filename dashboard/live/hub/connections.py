"""The hub's connections to Redis: a client that reads, and a subscriber to the server, or to each primary of a cluster.

The client is one of the engine, moved to the event loop: it finds the node of each key, and follows a failover. What it
reads from a node that does not answer counts as lost. Of one server a link is used until its first error and then
thrown away: what was missed in between is read anew by the next one. On a cluster the subscriber of a node that fails
is left out, and a task looks for the node, or for the one that took its place, until each primary is heard again. The
link ends when no node is left.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from dashboard.live.limits import Limits
from machines.audit.request_context import run_in_own_context
from machines.engine import Engine
from machines.engine.aio import loop_sockets
from machines.engine.connection import client, routing, waiting
from machines.engine.connection.client import FAILURES, build_options
from machines.engine.connection.cluster_routing import SLOTS, ClusterRouter
from machines.engine.connection.redis_url import RedisURL, Seed, read_url
from machines.engine.jobs.wakeups import DEFINITIONS
from machines.engine.keys import Keys
from machines.engine.pattern_keys import PatternKeys

from . import reading
from .sources import Source, World
from .subscriber import Subscriber

ONLY = ""  # the name of a server that is no cluster
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two looks for a node that is gone


class HubConnections:
    """``ring`` is called with a partition's root whenever it may have changed, and with "" to wake the hub;
    ``published`` when a definition was published."""

    def __init__(
        self, url: str, keys: Keys, limits: Limits, ring: Callable[[str], None], published: Callable[[], None]
    ) -> None:
        self._url = url
        self._keys = keys
        self._limits = limits
        self._ring = ring
        self._published = published
        self._channel = PatternKeys(keys.prefix).topic(DEFINITIONS).channel
        self._engine: Engine | None = None
        self._subscribers: dict[str, Subscriber] = {}
        self._left: list[Subscriber] = []  # to be closed
        self._mending: asyncio.Task[None] | None = None
        self._directory: dict[str, int] = {}
        self._changed = False

    async def open(self) -> Self:
        """Connect everywhere. Raises a RedisError, OSError or EngineUnavailable."""
        self._engine = await waiting.run(self._make_engine)
        if isinstance(self._router, ClusterRouter):
            await self._arrange()
            self._require_one()
            self._changed = False
        else:
            self._subscribers[ONLY] = self._make_subscriber(ONLY, None)
            await self._subscribers[ONLY].open()
        return self

    def _make_engine(self) -> Engine:
        deadline = self._limits.deadline
        options = {"socket_timeout": deadline, "socket_connect_timeout": deadline}
        made = waiting.compute(lambda: client.connect(self._url, **options))
        loop_sockets.move_to_loop(made)
        router = routing.get_router(made)
        if isinstance(router, ClusterRouter):
            router.retry_time = 0.0  # what a node refuses now is lost now: the next read asks again
        return Engine(made, prefix=self._keys.prefix, retry_for=0)

    @property
    def _router(self) -> routing.Router:
        assert self._engine is not None
        return routing.get_router(self._engine.client)

    async def close(self) -> None:
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        for subscriber in (*self._subscribers.values(), *self._left):
            with contextlib.suppress(*FAILURES):
                await subscriber.close()
        if self._engine is not None:
            loop_sockets.close(self._engine.client)

    @property
    def run_ids(self) -> frozenset[str]:
        """Name the servers as they are now: another one comes with a restart or a failover."""
        return frozenset(subscriber.run_id for subscriber in self._subscribers.values())

    @property
    def hints(self) -> bool:
        """Whether every server rings; if not, only reconciling shows all changes."""
        return all(subscriber.hints for subscriber in self._subscribers.values())

    def take_change(self) -> bool:
        """Tell, once, that nodes came or went: all has to be read anew."""
        changed, self._changed = self._changed, False
        return changed

    def check(self) -> None:
        """Leave out the nodes whose listening has ended. Raises where none is left."""
        for name, subscriber in list(self._subscribers.items()):
            try:
                subscriber.check()
            except FAILURES as error:
                self._leave(name, error)

    async def probe(self) -> None:
        """Ask every connection for a sign of life, within the deadline, and a cluster for its primaries."""
        await self._run_on_each(lambda name, subscriber: subscriber.probe())
        if isinstance(self._router, ClusterRouter):
            await waiting.run(self._router.refresh)
            if not self._is_arranged():
                self._mend()

    async def listen_to(self, roots: set[str]) -> None:
        """Listen to exactly these partitions from now on; when it returns, every later ring is heard."""
        placed: dict[str, list[str]] = defaultdict(list)
        for root in roots:
            placed[self._router.name_node(root)].append(root)
        await self._run_on_each(lambda name, subscriber: subscriber.listen_to(placed[name]))

    async def read(self, wanted: Sequence[Source]) -> World:
        """Read the sources as they are now, in pipelines of bounded size."""
        seen = World()
        for part in _split(wanted, self._limits.pipeline):
            latest = await self._read(part)
            seen = World(latest.directory, seen.readings | latest.readings, latest.at)
        self._directory = seen.directory
        return seen

    async def _read(self, wanted: Sequence[Source]) -> World:
        assert self._engine is not None
        try:
            return reading.take_in(wanted, await self._send(wanted), self._directory)
        except reading.LibraryMissing:
            await waiting.run(self._engine.load_missing_library)
            return reading.take_in(wanted, await self._send(wanted), self._directory)

    async def _send(self, wanted: Sequence[Source]) -> list[Any]:
        assert self._engine is not None
        commands = [(key or self._keys.machines, words) for key, words in reading.commands(self._keys, wanted)]
        return await waiting.run(routing.send, self._engine.client, commands)

    # Subscribers of a cluster

    async def _run_on_each(self, act: Callable[[str, Subscriber], Any]) -> None:
        """Act on all subscribers at once, and leave out those that fail. Raises where none is left."""
        names = list(self._subscribers)
        done = await asyncio.gather(*(act(name, self._subscribers[name]) for name in names), return_exceptions=True)
        for name, result in zip(names, done, strict=True):
            if isinstance(result, FAILURES):
                self._leave(name, result)
            elif isinstance(result, BaseException):
                raise result
        self._require_one()

    def _leave(self, name: str, error: BaseException) -> None:
        """Go on without a node of a cluster. Raises the error of a single server."""
        if not isinstance(self._router, ClusterRouter):
            raise error
        if (subscriber := self._subscribers.pop(name, None)) is not None:
            self._left.append(subscriber)
            self._changed = True
        self._require_one()
        self._mend()

    def _require_one(self) -> None:
        if not self._subscribers:
            raise RedisConnectionError("no node of the cluster answers")

    def _mend(self) -> None:
        if self._mending is None or self._mending.done():
            self._mending = asyncio.create_task(self._look_for_nodes(), name="live nodes", context=run_in_own_context())

    async def _look_for_nodes(self) -> None:
        """Run until each primary is heard."""
        pause = FIRST_PAUSE
        while True:
            with contextlib.suppress(*FAILURES):
                await self._arrange()
                if self._is_arranged():
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _list_primaries(self) -> Mapping[str, Seed]:
        """Return the name of each primary with its host and port, as the router knows them."""
        assert self._engine is not None
        nodes: list[Any] = self._engine.client.get_primaries()  # type: ignore[union-attr]
        return {node.name: (node.host, node.port) for node in nodes}

    def _is_arranged(self) -> bool:
        """Return whether each primary, and no other node, is heard, the right one of definitions, and each slot has an
        owner."""
        assert self._engine is not None
        held: Any = self._engine.client.nodes_manager.slots_cache  # type: ignore[union-attr]
        if sum(map(bool, held.values())) < SLOTS or self._subscribers.keys() != self._list_primaries().keys():
            return False
        return all(one.channel == self._choose_channel(name) for name, one in self._subscribers.items())

    def _choose_channel(self, name: str) -> str:
        return self._channel if self._router.name_node(self._channel) == name else ""

    async def _arrange(self) -> None:
        """Read which primaries there are, leave the nodes that are none, and listen to those that are new."""
        await waiting.run(self._router.refresh)
        primaries = self._list_primaries()
        for name, subscriber in list(self._subscribers.items()):
            if name not in primaries or subscriber.channel != self._choose_channel(name):
                self._left.append(self._subscribers.pop(name))
                self._changed = True
        new = [name for name in primaries if name not in self._subscribers]
        await asyncio.gather(*(self._connect(name, primaries[name]) for name in new))
        for subscriber in list(self._left):
            with contextlib.suppress(*FAILURES):
                await subscriber.close()
            self._left.remove(subscriber)
        if self._changed:
            self._ring("")

    async def _connect(self, name: str, node: Seed) -> None:
        """Listen to a node; leave one that cannot be heard to be closed."""
        subscriber = self._make_subscriber(name, node)
        self._left.append(subscriber)
        with contextlib.suppress(*FAILURES):
            await subscriber.open()
            self._left.remove(subscriber)
            self._subscribers[name] = subscriber
            self._changed = True

    def _make_subscriber(self, name: str, node: Seed | None) -> Subscriber:
        # RESP2 and bytes: its messages then come in one shape, a PONG included, which redis-py cannot read as text.
        listening = connect(self._url, self._limits, node, protocol=2, decode_responses=False)
        return Subscriber(listening, self._limits, self._ring, self._published, self._choose_channel(name))


def _split(wanted: Sequence[Source], size: int) -> Iterable[Sequence[Source]]:
    """Split the sources into parts; return at least one, so that the clock and the directory are always read."""
    return [wanted[start : start + size] for start in range(0, max(len(wanted), 1), size)]


def connect(url: str, limits: Limits, node: Seed | None = None, **more: Any) -> Redis:
    """Make a client of a URL; of a cluster, of one ``node``. It never tries twice by itself: whatever fails ends the
    link it belongs to."""
    settings = build_options(
        retry=Retry(NoBackoff(), 0),
        socket_timeout=limits.deadline,
        socket_connect_timeout=limits.deadline,
        health_check_interval=0,
        max_connections=4,
        **more,
    )
    if not url.startswith("unix"):
        settings["socket_keepalive"] = True
    place = read_url(url)
    if node is not None:
        return Redis(host=node[0], port=node[1], **settings | place.account_options)
    if place.kind == "sentinel":
        return _follow_master(place, settings)
    return Redis.from_url(url, **settings)


def _follow_master(place: RedisURL, settings: Mapping[str, Any]) -> Redis:
    asked = {name: settings[name] for name in ("socket_timeout", "socket_connect_timeout", "socket_keepalive")}
    make: Any = Sentinel
    sentinel = make(list(place.seeds), sentinel_kwargs=asked | {"decode_responses": True} | place.watcher_options)
    client: Redis = sentinel.master_for(place.service, **dict(settings) | place.account_options)
    return client
