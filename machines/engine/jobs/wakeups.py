"""What waiting workers hear and look at: bells of partitions, queues that hold jobs, due times, and shared partitions.

A step that makes a job ready, or sets something due soon, publishes on the channel of its partition. The server also
remembers both, and answers for many partitions in one call, so that a worker which missed a message finds the work by
a cheap look. Which worker looks after the due times of a partition follows from the list of live workers.
"""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from machines.engine.connection import routing
from machines.engine.connection.calls import Caller, require_any, translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineFault
from machines.engine.keys import Keys, Partition
from machines.engine.pattern_keys import PatternKeys
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import PartialList, PublishedMachine

from .workers import WorkerRegistry

DEFINITIONS = "definitions"  # a topic of the bus (machines/patterns/bus.py): {"machine": name, "version": number}
MAX_NEWS = 64  # workers that are woken for a new machine; others find it at their next check
NEWS_MS = 5_000  # life of the wake-up list

KEYS_TOGETHER = 500  # keys of one EXISTS

Queue = tuple[str, str]  # machine, queue
Place = tuple[Queue, int, str]  # and the number of a partition, and its key


class ReadyQueues:
    """Reads which queues hold work, and announces published machines."""

    def __init__(self, client: Client, keys: Keys, catalog: Catalog) -> None:
        self._client = client
        self._keys = keys
        self._catalog = catalog
        self._definitions = PatternKeys(keys.prefix).topic(DEFINITIONS).channel

    def find(self, queues: Iterable[Queue]) -> dict[Queue, set[int]]:
        """Return queue -> its partitions that hold ready jobs, for those of the queues that have any. On a single
        server one command for 500 keys when there are none."""
        places = [
            (queue, number, partition.ready(queue[1]))
            for queue in queues
            for number, partition in enumerate(self._catalog.find_partitions(queue[0]))
        ]
        places = self._drop_empty(places)
        answers = self._send([(key, ("EXISTS", key)) for _, _, key in places])
        found: dict[Queue, set[int]] = {}
        for (queue, number, _), answer in zip(places, answers, strict=True):
            if answer == 1:
                found.setdefault(queue, set()).add(number)
        return found

    def list_queues(self, machines: Iterable[str]) -> PartialList[Queue]:
        """List every queue these machines ever had, in the partitions that answer. Raises EngineUnavailable where none
        does."""
        places = [(machine, partition) for machine in machines for partition in self._catalog.find_partitions(machine)]
        answers = self._send([(partition.queues, ("SMEMBERS", partition.queues)) for _, partition in places])
        require_any(answers)
        pairs = list(zip(places, answers, strict=True))
        found = {
            (machine, str(queue))
            for (machine, _), answer in pairs
            if not isinstance(answer, Exception)
            for queue in answer
        }
        missing = [partition.root for (_, partition), answer in pairs if isinstance(answer, Exception)]
        return PartialList(sorted(found), missing=missing)

    def announce(self, published: PublishedMachine) -> None:
        """Publish the new current version to the topic ``definitions``, and wake idle workers for a new machine. A
        process that misses the message finds the version at its next check."""
        text = json.dumps({"machine": published.name, "version": published.version}, separators=(",", ":"))
        with contextlib.suppress(*FAILURES):
            routing.execute(self._client, ("SPUBLISH", self._definitions, text))
        if published.created:
            with contextlib.suppress(*FAILURES):
                self._wake_workers()

    def _wake_workers(self) -> None:
        count = min(int(routing.execute(self._client, ("ZCARD", self._keys.workers))), MAX_NEWS)
        if count:
            news = self._keys.news
            words: list[routing.Command] = [("LPUSH", news, *["1"] * count), ("LTRIM", news, 0, MAX_NEWS - 1)]
            routing.send(self._client, [(news, each) for each in (*words, ("PEXPIRE", news, NEWS_MS))])

    def _drop_empty(self, places: list[Place]) -> list[Place]:
        """Leave out groups of places that hold nothing, on a single server. A cluster is asked for each key."""
        if not isinstance(self._client, redis.Redis):
            return places
        groups = [places[start : start + KEYS_TOGETHER] for start in range(0, len(places), KEYS_TOGETHER)]
        try:
            pipeline = self._client.pipeline(transaction=False)
            for group in groups:
                pipeline.exists(*(key for _, _, key in group))
            counts = pipeline.execute() if groups else []
        except FAILURES as error:
            translate(error)
        return [place for group, count in zip(groups, counts, strict=True) if int(count) for place in group]

    def _send(self, commands: Sequence[tuple[str, routing.Command]]) -> list[Any]:
        try:
            return routing.send(self._client, commands) if commands else []
        except FAILURES as error:
            translate(error)


TOGETHER = 500  # roots in one call: well below a millisecond
SKEW_MS = 2_000  # by which clocks of nodes may differ, and calls of one reading lie apart
SHARES = 128  # parts into which partitions are divided among workers
RELIST = 60.0  # seconds after which partitions are listed anew, whatever the revision of the catalog says
LIVE_MS = 7_000  # a worker that has not joined again for so long has no share
Root = str


@dataclass(frozen=True, slots=True)
class Bell:
    """One message of a bell channel. ``queue``: a job became ready there; ``due``: ms at which something is due; both
    None for a message of another kind."""

    root: Root
    queue: str | None = None
    due: int | None = None


class ServerMemory:
    """Asks what the servers remember of their partitions (``sb_wakeups``). Safe to share between threads."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._known: dict[str, frozenset[Root]] = {}  # a server's memory -> roots of which it knows what is due

    def find_rung(self, roots: Collection[Root]) -> dict[Root, list[str]]:
        """Return root -> its queues that rang and were not emptied since."""
        return {root: word.split() for answer in self._ask(roots, "jobs")[1] for root, word in answer.words.items()}

    def find_touched(self, roots: Collection[Root], since: int) -> tuple[int, set[Root], set[Root]]:
        """Return ms of the server's clock, the partitions that may have changed since a moment (ms by that clock), and
        those whose server answered: of the others nobody knows."""
        now, answers = self._ask(roots, f"since {max(0, since - SKEW_MS)}")
        touched = {root for answer in answers for root in (answer.words if answer.memory else answer.group)}
        return now, touched, set().union(*(answer.group for answer in answers))

    def find_due(
        self, roots: Collection[Root], horizon: int, clocks: dict[frozenset[Root], int] | None = None
    ) -> tuple[int, dict[Root, int | None]]:
        """Return ms of the server's clock, and root -> ms for partitions where something is due within ``horizon`` ms,
        None where only the keys tell. ``clocks`` gets ms of each server's clock, by the partitions that it holds."""
        now, answers = self._ask(roots, str(horizon))
        found: dict[Root, int | None] = {}
        known = {answer.memory: self._known.get(answer.memory, frozenset()) for answer in answers}
        calls: list[tuple[str, tuple[str, ...], Sequence[Any]]] = []
        asked: list[tuple[Answer, list[Root]]] = []
        for answer in answers:
            if clocks is not None:
                clocks[answer.group] = answer.now
            found |= _read_dues(answer.words)
            unknown = list(answer.group - known[answer.memory])
            for start in range(0, len(unknown), TOGETHER):
                part = unknown[start : start + TOGETHER]
                calls.append(("sb_wakeups", (), (answer.asked, horizon, *part)))
                asked.append((answer, part))
        for (answer, part), reply in zip(asked, self._caller.many(calls), strict=True):
            if isinstance(reply, Exception):
                continue
            words = _read_words(reply)
            found |= _read_dues(words)
            known[answer.memory] = known[answer.memory].union(root for root in part if words.get(root) != "")
        self._known = known
        return now, found

    def _ask(self, roots: Collection[Root], what: str) -> tuple[int, list[Answer]]:
        """Return the latest ms of the servers' clocks, and the answer of each server. Nodes that are away do not hide
        what the others know; raises EngineUnavailable where none answers."""
        try:
            groups = [frozenset(group) for group in routing.group_by_node(self._caller.client, list(roots)) if group]
        except FAILURES as error:
            translate(error)
        firsts = [min(group) for group in groups]
        answers, failed = [], None
        replies = self._caller.many([("sb_wakeups", (), (first, what)) for first in firsts])
        for first, group, reply in zip(firsts, groups, replies, strict=True):
            if isinstance(reply, Exception):
                failed = reply
                continue
            words = {root: word for root, word in _read_words(reply).items() if root in group}
            answers.append(Answer(first, group, int(reply[1]), str(reply[2]), words))
        if failed is not None and not answers:
            translate(failed)
        return max((answer.now for answer in answers), default=0), answers


@dataclass(frozen=True, slots=True)
class Answer:
    """What one server remembers: of ``group``, the partitions it holds, asked by the root of one of them."""

    asked: Root
    group: frozenset[Root]
    now: int
    memory: str
    words: dict[Root, str]


def _read_words(reply: Sequence[Any]) -> dict[Root, str]:
    if reply[0] != Status.OK:
        raise EngineFault(f"sb_wakeups: {reply[1]}")
    return {str(root): str(word) for root, word in zip(reply[3::2], reply[4::2], strict=True)}


def _read_dues(words: Mapping[Root, str]) -> dict[Root, int | None]:
    return {root: int(word) if word else None for root, word in words.items()}


class ChangeWatch:
    """Finds the partitions that may have changed since it was asked last, as the servers remember. It names all of them
    at first, and again after ``whole`` seconds. Not to be shared between threads."""

    def __init__(self, memory: ServerMemory, whole: float) -> None:
        self._memory = memory
        self._whole = whole
        self._asked = 0  # ms of the server's clock
        self._whole_at = -float("inf")  # monotonic seconds
        self._known: set[Root] = set()

    def find(self, roots: Collection[Root]) -> set[Root]:
        """Return those that may have changed, and those that it was not asked about before, or that did not answer
        then."""
        now, started = 0, time.monotonic()
        touched: set[Root] = set()
        answered: set[Root] = set()
        if roots:
            now, touched, answered = self._memory.find_touched(roots, self._asked)
        if started - self._whole_at >= self._whole:
            self._known, self._whole_at = set(), started
        found = touched | (set(roots) - self._known)
        self._known, self._asked = answered, now or self._asked
        return found


class Wakeups:
    """For the workers of one prefix. Safe to share between threads."""

    def __init__(self, caller: Caller, keys: Keys, catalog: Catalog, registry: WorkerRegistry) -> None:
        self._caller = caller
        self._keys = keys
        self._catalog = catalog
        self._registry = registry
        self.memory = ServerMemory(caller)
        self._recent: tuple[str, float, Mapping[Root, tuple[str, int]]] | None = None  # revision, when, all roots
        self.definitions = PatternKeys(keys.prefix).topic(DEFINITIONS).channel

    @property
    def client(self) -> Client:
        return self._caller.client

    # Partitions and channels

    def roots(self, machines: Iterable[str]) -> dict[Root, tuple[str, int]]:
        """Return root -> machine and number, for each partition of those machines that exist."""
        found: dict[Root, tuple[str, int]] = {}
        for machine in machines:
            partitions = self._catalog.find_partitions(machine)
            found |= {partition.root: (machine, number) for number, partition in enumerate(partitions)}
        return found

    def recent_roots(self) -> Mapping[Root, tuple[str, int]]:
        """Return the same of all machines, for callers that ask again and again: listed anew when the catalog's
        revision changed, or after a minute. Raises EngineUnavailable."""
        revision, now, held = self._catalog.revision(), time.monotonic(), self._recent
        if held is None or held[0] != revision or now - held[1] >= RELIST:
            held = self._recent = revision, now, self.roots(self._catalog.recent_versions())
        return held[2]

    @staticmethod
    def channel(root: Root) -> str:
        return Partition(root).bells

    @staticmethod
    def read(channel: str, message: str) -> Bell:
        """Read a message of a partition's channel."""
        root, (kind, _, rest) = channel.removesuffix(":bells"), message.partition(" ")
        if kind == "job" and rest:
            return Bell(root, queue=rest)
        if kind == "due" and rest.isdigit():
            return Bell(root, due=int(rest))
        return Bell(root)

    def place(self, channels: Sequence[str]) -> list[tuple[redis.Redis, list[str]]]:
        """Return a client of each server with the channels that it holds. Raises EngineUnavailable."""
        client = self.client
        if not isinstance(client, redis.RedisCluster):
            return [(client, list(channels))]
        try:
            placed: dict[Any, list[str]] = {}
            for channel in channels:
                placed.setdefault(client.get_node_from_key(channel), []).append(channel)  # type: ignore[no-untyped-call]
            return [(client.get_redis_connection(node), names) for node, names in placed.items()]
        except FAILURES as error:
            translate(error)

    def find_server(self, root: Root) -> str:
        """Return the address of the server that holds a partition; "" where there is but one. Raises
        EngineUnavailable."""
        if not isinstance(self.client, redis.RedisCluster):
            return ""
        try:
            return str(self.client.get_node_from_key(root).name)  # type: ignore[no-untyped-call]
        except FAILURES as error:
            translate(error)

    def reread_clock(self) -> None:
        """Read the server's clock anew before it is needed next: it was set."""
        self._registry.reread_clock()

    # The server's memory

    def rung(self, roots: Mapping[Root, tuple[str, int]]) -> dict[Queue, set[int]]:
        """Return queue -> its partitions that the server remembers as rung and not emptied since."""
        found: dict[Queue, set[int]] = {}
        for root, queues in self.memory.find_rung(roots).items():
            machine, number = roots[root]
            for queue in queues:
                found.setdefault((machine, queue), set()).add(number)
        return found

    def watch_changes(self, *, whole: float) -> ChangeWatch:
        """Return a watch of its own for a duty that reads what changed."""
        return ChangeWatch(self.memory, whole)

    # Shares

    def join(self, worker: str) -> list[str]:
        """Note that a worker shares in the duties; return those that do, this one included. One round trip."""
        return self._registry.join(worker, LIVE_MS)

    def leave(self, worker: str) -> None:
        """Give up a worker's share at once."""
        self._registry.leave_shares(worker)


class Shares:
    """Which partitions are this worker's: each share belongs to the live worker with the highest hash for it, so that
    a worker that comes or goes changes only its own shares."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._members: tuple[str, ...] = ()
        self._mine: frozenset[int] = frozenset(range(SHARES))

    def update(self, members: Iterable[str]) -> bool:
        """Take note of the live workers; return whether that changed this worker's shares."""
        live = tuple(sorted({*members, self._worker}))
        if live == self._members:
            return False
        before, self._members = self._mine, live
        self._mine = frozenset(
            share for share in range(SHARES) if max(live, key=lambda name: _weigh(name, share)) == self._worker
        )
        return self._mine != before

    def owns(self, root: Root) -> bool:
        return zlib.crc32(root.encode()) % SHARES in self._mine


def _weigh(worker: str, share: int) -> tuple[int, str]:
    return zlib.crc32(f"{share}/{worker}/{share}".encode()), worker
