"""The hub's connections to Redis: to one server, or to each primary of a cluster.

Of one server a link is used until its first error and then thrown away: what was missed in between is read anew by the
next one. On a cluster a node that fails is left out, its partitions count as lost, and a task looks for the node, or
for the one that took its place, until each primary is connected again. The link ends when no node is left.
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
from redis.crc import key_slot
from redis.exceptions import AskError, MovedError
from redis.exceptions import ConnectionError as RedisConnectionError

from dashboard.live.limits import Limits
from machines.audit.request_context import run_in_own_context
from machines.engine import Engine
from machines.engine.connection.client import FAILURES, build_options
from machines.engine.connection.redis_url import RedisURL, Seed, read_url
from machines.engine.jobs.wakeups import DEFINITIONS
from machines.engine.keys import Keys
from machines.engine.pattern_keys import PatternKeys

from . import reading
from .reading import Command
from .sources import Source, World
from .subscriber import Subscriber

ONLY = ""  # the name of a server that is no cluster
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two looks for a node that is gone
GONE = RedisConnectionError("the node does not answer")


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
        self._topology = Topology(url, limits) if read_url(url).kind == "cluster" else None
        self._nodes: dict[str, NodeConnection] = {}
        self._left: list[NodeConnection] = []  # to be closed
        self._mending: asyncio.Task[None] | None = None
        self._directory: dict[str, int] = {}
        self._changed = False

    async def open(self) -> Self:
        """Connect everywhere. Raises a RedisError or OSError."""
        if self._topology is None:
            self._nodes[ONLY] = NodeConnection(
                self._url, self._limits, self._ring, self._published, channel=self._channel
            )
            await self._nodes[ONLY].open()
            return self
        await self._arrange(self._topology)
        self._require_one()
        self._changed = False
        return self

    async def close(self) -> None:
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        for node in (*self._nodes.values(), *self._left):
            with contextlib.suppress(*FAILURES):
                await node.close()

    @property
    def run_ids(self) -> frozenset[str]:
        """Name the servers as they are now: another one comes with a restart or a failover."""
        return frozenset(node.subscriber.run_id for node in self._nodes.values())

    @property
    def hints(self) -> bool:
        """Whether every server rings; if not, only reconciling shows all changes."""
        return all(node.subscriber.hints for node in self._nodes.values())

    def take_change(self) -> bool:
        """Tell, once, that nodes came or went: all has to be read anew."""
        changed, self._changed = self._changed, False
        return changed

    def take_busy(self) -> float | None:
        """Return the seconds of processor that the busiest server took for what was read since the last call; None
        where one did not say."""
        found = [node.take_busy() for node in self._nodes.values()]
        known = [busy for busy in found if busy is not None]
        return max(known, default=0.0) if len(known) == len(found) else None

    def check(self) -> None:
        """Leave out the nodes whose listening has ended. Raises where none is left."""
        for name, node in list(self._nodes.items()):
            try:
                node.subscriber.check()
            except FAILURES:
                self._leave(name)

    async def probe(self) -> None:
        """Ask every connection for a sign of life, within the deadline, and a cluster for its primaries."""
        await self._run_on_each(lambda name, node: node.subscriber.probe())
        if self._topology is not None:
            await self._topology.read(node.client for node in self._nodes.values())
            if not self._is_arranged(self._topology):
                self._mend(self._topology)

    async def listen_to(self, roots: set[str]) -> None:
        """Listen to exactly these partitions from now on; when it returns, every later ring is heard."""
        placed: dict[str, list[str]] = defaultdict(list)
        for root in roots:
            placed[self._find_owner(root)].append(root)
        await self._run_on_each(lambda name, node: node.subscriber.listen_to(placed[name]))

    async def read(self, wanted: Sequence[Source]) -> World:
        """Read the sources as they are now, in pipelines of bounded size."""
        seen = World()
        for part in _split(wanted, self._limits.pipeline):
            latest = await self._read(part)
            seen = World(latest.directory, seen.readings | latest.readings, latest.at)
        self._directory = seen.directory
        return seen

    async def _read(self, wanted: Sequence[Source]) -> World:
        try:
            return reading.take_in(wanted, await self._send(wanted), self._directory)
        except reading.LibraryMissing:
            await asyncio.to_thread(self._load_library)
            return reading.take_in(wanted, await self._send(wanted), self._directory)

    def _load_library(self) -> None:
        """Load the library by the rules of the engine, which never puts an older one over a newer one."""
        engine = Engine.from_url(self._url, prefix=self._keys.prefix, retry_for=0)
        try:
            engine.load_missing_library()
        finally:
            engine.client.close()

    async def _send(self, wanted: Sequence[Source]) -> list[Any]:
        commands = reading.commands(self._keys, wanted)
        if self._topology is None:
            return await self._nodes[ONLY].send(words for _, words in commands)
        answers = await self._send_by_owner(commands)
        moved = [n for n, answer in enumerate(answers) if isinstance(answer, MovedError)]
        if moved:  # after a failover, or when slots went to another node
            with contextlib.suppress(*FAILURES):
                await self._arrange(self._topology)
            again = await self._send_by_owner([commands[n] for n in moved])
            for n, answer in zip(moved, again, strict=True):
                answers[n] = answer
        return answers

    async def _send_by_owner(self, commands: Sequence[Command]) -> list[Any]:
        """Send to all nodes at once. What a node that fails was asked for has an error as answer."""
        placed: dict[str, list[int]] = defaultdict(list)
        first = next(iter(sorted(self._nodes)), ONLY)
        for number, (key, _) in enumerate(commands):
            placed[self._find_owner(key) if key else first].append(number)
        answers: list[Any] = [GONE] * len(commands)

        async def ask(name: str, node: NodeConnection) -> None:
            numbers = placed.get(name, [])
            found = await node.send(commands[n][1] for n in numbers) if numbers else []
            for n, answer in zip(numbers, found, strict=True):
                answers[n] = await self._follow(answer, commands[n]) if isinstance(answer, AskError) else answer

        await self._run_on_each(ask)
        return answers

    async def _follow(self, error: AskError, command: Command) -> Any:
        """Ask the node to which a slot is on its way."""
        node = self._nodes.get(f"{error.host}:{error.port}")
        return error if node is None else (await node.send([("ASKING",), command[1]]))[1]

    # Nodes of a cluster

    def _find_owner(self, key: str) -> str:
        return ONLY if self._topology is None else self._topology.owner(key)

    async def _run_on_each(self, act: Callable[[str, NodeConnection], Any]) -> None:
        """Act on all nodes at once, and leave out those that fail. Raises where none is left."""
        names = list(self._nodes)
        done = await asyncio.gather(*(act(name, self._nodes[name]) for name in names), return_exceptions=True)
        for name, result in zip(names, done, strict=True):
            if isinstance(result, FAILURES):
                if self._topology is None:
                    raise result
                self._leave(name)
            elif isinstance(result, BaseException):
                raise result
        self._require_one()

    def _leave(self, name: str) -> None:
        """Go on without a node."""
        if self._topology is None:
            self._nodes[name].subscriber.check()  # raises what ended it
            return
        if (node := self._nodes.pop(name, None)) is not None:
            self._left.append(node)
            self._changed = True
        self._require_one()
        self._mend(self._topology)

    def _require_one(self) -> None:
        if not self._nodes:
            raise RedisConnectionError("no node of the cluster answers")

    def _mend(self, topology: Topology) -> None:
        if self._mending is None or self._mending.done():
            self._mending = asyncio.create_task(
                self._look_for_nodes(topology), name="live nodes", context=run_in_own_context()
            )

    async def _look_for_nodes(self, topology: Topology) -> None:
        """Run until each primary is connected."""
        pause = FIRST_PAUSE
        while True:
            with contextlib.suppress(*FAILURES):
                await self._arrange(topology)
                if self._is_arranged(topology):
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _is_arranged(self, topology: Topology) -> bool:
        """Return whether each primary, and no other node, is connected, and the right one hears of definitions."""
        if not topology.complete or self._nodes.keys() != topology.primaries.keys():
            return False
        return all(node.channel == self._choose_channel(name, topology) for name, node in self._nodes.items())

    def _choose_channel(self, name: str, topology: Topology) -> str:
        return self._channel if topology.owner(self._channel) == name else ""

    async def _arrange(self, topology: Topology) -> None:
        """Read which primaries there are, leave the nodes that are none, and connect to those that are new."""
        await topology.read([node.client for node in self._nodes.values()])
        for name, node in list(self._nodes.items()):
            if name not in topology.primaries or node.channel != self._choose_channel(name, topology):
                self._left.append(self._nodes.pop(name))
                self._changed = True
        new = [name for name in topology.primaries if name not in self._nodes]
        await asyncio.gather(*(self._connect(name, topology) for name in new))
        left, self._left = self._left, []
        for node in left:
            with contextlib.suppress(*FAILURES):
                await node.close()
        if self._changed:
            self._ring("")

    async def _connect(self, name: str, topology: Topology) -> None:
        node = NodeConnection(
            self._url, self._limits, self._ring, self._published,
            channel=self._choose_channel(name, topology), node=topology.primaries[name],
        )  # fmt: skip
        try:
            await node.open()
        except FAILURES:
            with contextlib.suppress(*FAILURES):
                await node.close()
            return
        if name in self._nodes:  # another task was faster
            await node.close()
            return
        self._nodes[name] = node
        self._changed = True


def _split(wanted: Sequence[Source], size: int) -> Iterable[Sequence[Source]]:
    """Split the sources into parts; return at least one, so that the clock and the directory are always read."""
    return [wanted[start : start + size] for start in range(0, max(len(wanted), 1), size)]


Words = Sequence[Any]
#: asked before and after: what the server does for others, or other processes of its machine, does not count
CPU = ("INFO", "cpu")
#: of the thread that carries out commands; where the system does not count that, of the process
SPENT = (("used_cpu_user_main_thread", "used_cpu_sys_main_thread"), ("used_cpu_user", "used_cpu_sys"))


class NodeConnection:
    """``channel``: that of published definitions, if this server has it; else "". ``node``: host and port in a
    cluster."""

    def __init__(
        self,
        url: str,
        limits: Limits,
        ring: Callable[[str], None],
        published: Callable[[], None],
        *,
        channel: str = "",
        node: Seed | None = None,
    ) -> None:
        self.channel = channel
        self.client = connect(url, limits, node)
        # RESP2 and bytes: its messages then come in one shape, a PONG included, which redis-py cannot read as text.
        listening = connect(url, limits, node, protocol=2, decode_responses=False)
        self._busy: float | None = 0.0
        self.subscriber = Subscriber(listening, limits, ring, published, channel)

    async def open(self) -> Self:
        """Open the connections. Raises a RedisError or OSError."""
        await self.subscriber.open()
        return self

    async def close(self) -> None:
        try:
            await self.subscriber.close()
        finally:
            await self.client.aclose()

    async def send(self, commands: Iterable[Words]) -> list[Any]:
        """Send commands in one round trip; return the answer of each, or its error."""
        pipeline = self.client.pipeline(transaction=False)
        for words in (CPU, *commands, CPU):
            pipeline.execute_command(*words)
        began, *answers, ended = await pipeline.execute(raise_on_error=False)
        spent = _count_seconds(began, ended)
        self._busy = None if spent is None or self._busy is None else self._busy + spent
        return answers

    def take_busy(self) -> float | None:
        """Return the seconds of processor time that the server took for what was sent since the last call; None if it
        did not say."""
        busy, self._busy = self._busy, 0.0
        return busy


def _count_seconds(began: Any, ended: Any) -> float | None:
    """Return the seconds of processor time between two answers to INFO; None if one of them does not say."""
    if not isinstance(began, dict) or not isinstance(ended, dict):
        return None
    for names in SPENT:
        if all(name in ended for name in names):
            return max(0.0, sum(float(ended[name]) - float(began[name]) for name in names))
    return None


SLOTS = 16384


class Topology:
    """``primaries``: name -> host and port, as of the last reading; ``complete``: whether each slot has an owner."""

    def __init__(self, url: str, limits: Limits) -> None:
        self._url = url
        self._limits = limits
        self._known: dict[Seed, None] = dict.fromkeys(read_url(url).seeds)
        self._ranges: list[tuple[int, int, str]] = []
        self.primaries: Mapping[str, Seed] = {}
        self.complete = False

    async def read(self, clients: Iterable[Redis] = ()) -> None:
        """Ask the ``clients``, then every node known so far, until one answers. Raises what the last one raised."""
        failure: BaseException | None = None
        for client in clients:
            try:
                return self._take(await _ask(client, self._limits.deadline))
            except FAILURES as error:
                failure = error
        for node in list(self._known):
            client = connect(self._url, self._limits, node)
            try:
                return self._take(await _ask(client, self._limits.deadline), node[0])
            except FAILURES as error:
                failure = error
            finally:
                await client.aclose()
        assert failure is not None
        raise failure

    def owner(self, key: str) -> str:
        """Return the name of the primary that has a key; "" where no node has it."""
        slot = key_slot(key.encode())
        return next((name for first, last, name in self._ranges if first <= slot <= last), "")

    def _take(self, ranges: list[Any], host: str = "") -> None:
        """Keep the answer of a node. A node that does not know its own name is at ``host``, where it answered."""
        found: list[tuple[int, int, str]] = []
        primaries: dict[str, Seed] = {}
        for first, last, *nodes in ranges:
            places = [(str(node[0] or host), int(node[1])) for node in nodes]
            name = f"{places[0][0]}:{places[0][1]}"
            primaries[name] = places[0]
            found.append((int(first), int(last), name))
            self._known |= dict.fromkeys(places)
        self._ranges, self.primaries = found, primaries
        self.complete = sum(last - first + 1 for first, last, _ in found) == SLOTS


async def _ask(client: Redis, deadline: float) -> list[Any]:
    async with asyncio.timeout(deadline):  # not wait_for, which loses a cancellation in Python 3.11
        ranges: list[Any] = await client.execute_command("CLUSTER", "SLOTS")
    return ranges


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
