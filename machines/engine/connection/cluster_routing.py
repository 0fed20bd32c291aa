"""Routes commands on a Redis Cluster by the slot of their own key.

redis-py keeps the topology: which node serves which slot. Its way of sending is not used: it asks the default node for
the keys of each function call, cannot go on when that node is gone, and repeats calls that may have happened.

- A node that refuses a call for certain (MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING) gets it again, or another does:
  at once after a redirection, else after a pause, for ``RETRY_TIME`` seconds.
- After an error of a connection the topology is read anew from every known node and every seed. The call is sent to
  the new owner of its slot where it certainly never left this process; else it fails, since it may have happened.
- A node that did not answer in time is left alone for ``SILENCE`` seconds: calls on it fail at once.
"""

import contextlib
import os
import random
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import redis
from redis import exceptions
from redis.cluster import ClusterNode, get_node_name

from machines.engine.keys import crc16

from . import waiting
from .client import FAILURES, SEEDS, SOCKET_TIMEOUT
from .connection_cache import UNSENT, Exchange, Word, get_cache

SLOTS = 16384
RETRY_TIME = 3.0  # seconds for which a call that was refused for now is sent again: a slot moves in less
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.2  # seconds between two tries
NO_RETRY_TIME = 5.0  # seconds after a slot stayed down for RETRY_TIME in which other calls do not wait as well
REDIRECTIONS = 5  # in a row without a pause: more mean that nodes disagree
SILENCE = 5.0  # seconds: as long as a call waits, so that a page waits once for a node that hangs
REFRESH_EVERY = 0.2  # seconds between two reads of the topology
NODE = "signalbox_node"  # attribute of errors of a connection: the node, host:port

REDIRECTED = exceptions.AskError  # and MovedError, which redis-py derives from it
DOWN = (exceptions.ClusterDownError, exceptions.BusyLoadingError)
REFUSED = (REDIRECTED, exceptions.TryAgainError, *DOWN)
LATER = (exceptions.TryAgainError, *DOWN)  # the same node may take the call after a pause
LOST = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)

Node = Any  # redis-py's ClusterNode
Command = Sequence[Word]


@lru_cache(maxsize=65536)
def find_slot(key: str) -> int:
    """Return the slot of a key (cluster specification): of its hash tag, where it has one."""
    data = key.encode()
    opened = data.find(b"{")
    closed = data.find(b"}", opened + 1) if opened >= 0 else -1
    return crc16(data[opened + 1 : closed] if closed > opened + 1 else data) % SLOTS


class LeftAlone(exceptions.TimeoutError):
    """A node was not asked, because it did not answer in time a moment ago."""


class _Batch:
    """Commands with their slots, the node each was sent to last, and its answer so far."""

    def __init__(self, commands: Sequence[tuple[str, Command]], last: Command | None = None) -> None:
        self.slots = [find_slot(key) for key, _ in commands]
        self.words = [words for _, words in commands]
        self.last = last
        self.nodes: list[Node | None] = [None] * len(commands)
        self.answers: list[Any] = [None] * len(commands)
        self.lasts: list[Any] = [None] * len(commands)


class ClusterRouter:
    """Sends commands on one cluster client. Safe to share between threads."""

    spread = True

    def __init__(self, client: redis.RedisCluster) -> None:
        self._client = client
        self._manager: Any = client.nodes_manager
        self._seeds: tuple[tuple[str, int], ...] = getattr(client, SEEDS, ()) or tuple(
            (node.host, node.port) for node in self._manager.startup_nodes.values()
        )
        self._timeout: float = self._manager.connection_kwargs.get("socket_timeout") or SOCKET_TIMEOUT
        self._lock = threading.Lock()
        self._refreshed = -REFRESH_EVERY  # moment of the monotonic clock
        self._no_retry_until = 0.0
        self.retry_time = RETRY_TIME
        self._silent: dict[str, float] = {}  # name of a node -> until when it is left alone
        _all.add(self)

    @property
    def callbacks(self) -> Mapping[str, Any]:
        """Return redis-py's conversions, which are the same for all nodes."""
        found: Mapping[str, Any] = self._connect(next(iter(self._manager.nodes_cache.values()))).response_callbacks
        return found

    # Send

    def exchange(self, key: str, words: Command) -> Any:
        """Send one command and return its answer as it came. Raises one of ``FAILURES``."""
        owners = self._manager.slots_cache.get(find_slot(key))
        if not owners or (self._silent and self._forget_silences()):
            return self._settle_one(_Batch([(key, words)]))
        try:
            return get_cache(self._connect(owners[0]).connection_pool).exchange(words)
        except FAILURES as error:
            if isinstance(error, exceptions.ResponseError) and not isinstance(error, REFUSED):
                raise
            batch = _Batch([(key, words)])
            batch.nodes[0], batch.answers[0] = owners[0], error
            self._note(owners[0], error)
        return self._settle_one(batch)

    def _settle_one(self, batch: _Batch) -> Any:
        if batch.nodes[0] is None:
            self._send_round(batch, [0])
        self._settle(batch)
        if isinstance(batch.answers[0], Exception):
            raise batch.answers[0]
        return batch.answers[0]

    def send(self, commands: Sequence[tuple[str, Command]], last: Command | None = None) -> tuple[list[Any], list[Any]]:
        """Send commands to all their nodes at once; return, in order, the answer or error of each, and for each the
        answer to ``last``, which follows on the same connection."""
        batch = _Batch(commands, last)
        self._send_round(batch, range(len(commands)))
        self._settle(batch)
        return batch.answers, batch.lasts

    def stream(self, portions: Iterable[Sequence[tuple[str, Command]]]) -> Iterator[Any]:
        """Send all portions at once, and yield the answers as ``send`` returns them."""
        return iter(self.send([command for commands in portions for command in commands])[0])

    def send_everywhere(self, words: Command) -> list[Any]:
        """Return the answer, or the error, of each primary."""
        primaries: list[Node] = self._client.get_primaries()  # type: ignore[no-untyped-call]
        found = self._exchange_all([(node, [words]) for node in primaries])
        for node, answers in zip(primaries, found, strict=True):
            if isinstance(answers, Exception):
                self._note(node, answers)
        return [answers if isinstance(answers, Exception) else answers[0] for answers in found]

    def list_nodes(self) -> list[redis.Redis]:
        """Return a client for each primary."""
        primaries: list[Node] = self._client.get_primaries()  # type: ignore[no-untyped-call]
        return [self._connect(node) for node in primaries]

    def name_node(self, key: str) -> str:
        """Return the node that is known to hold a key, ``host:port``; "" where none is. Asks no node."""
        owners = self._manager.slots_cache.get(find_slot(key))
        return str(owners[0].name) if owners else ""

    def group(self, keys: Sequence[str]) -> list[list[str]]:
        """Group keys by the node that holds them; those of slots that no node serves are a group."""
        groups: dict[str, list[str]] = {}
        for key in keys:
            owner = self._find_owner(find_slot(key))
            groups.setdefault("" if owner is None else owner.name, []).append(key)
        return list(groups.values())

    # Repeat what was refused

    def _settle(self, batch: _Batch) -> None:
        """Send again what was refused, until it is answered or its time is over."""
        pause, until, rounds = FIRST_PAUSE, time.monotonic() + self.retry_time, 0
        while again := [n for n in range(len(batch.words)) if self._may_repeat(batch, n)]:
            elsewhere = [n for n in again if not isinstance(batch.answers[n], LATER)]
            rounds += 1
            if not elsewhere or rounds % REDIRECTIONS == 0:
                if not self._wait([batch.answers[n] for n in again], pause, until):
                    return
                pause = min(2 * pause, LAST_PAUSE)
            self._send_round(batch, elsewhere or again)

    def _may_repeat(self, batch: _Batch, number: int) -> bool:
        """Tell whether a command was certainly not carried out, and may be elsewhere or later."""
        answer = batch.answers[number]
        if isinstance(answer, REFUSED):
            return True
        if not isinstance(answer, Exception) or not getattr(answer, UNSENT, False):
            return False
        owner, node = self._find_owner(batch.slots[number]), batch.nodes[number]
        return owner is not None and node is not None and owner.name != node.name

    def _wait(self, refusals: Sequence[Any], pause: float, until: float) -> bool:
        """Wait before the next try; return False where the time is over. Where slots stayed down for one call, others
        do not wait for them as well."""
        now, down = time.monotonic(), all(isinstance(refusal, DOWN) for refusal in refusals)
        if down and now < self._no_retry_until:
            return False
        if now + pause > until:
            if down:
                self._no_retry_until = now + NO_RETRY_TIME
            return False
        waiting.pause(pause * random.uniform(0.5, 1.0))  # noqa: S311
        return True

    # Rounds

    def _send_round(self, batch: _Batch, numbers: Sequence[int]) -> None:
        """Send these commands, each to the owner of its slot or to where it was redirected, to all nodes at once."""
        groups: dict[tuple[str, bool], tuple[Node, list[int]]] = {}
        for number in numbers:
            answer = batch.answers[number]
            node = self._redirect(answer, batch.nodes[number]) if isinstance(answer, REDIRECTED) else None
            asking = node is not None
            node = node or self._find_owner(batch.slots[number])
            batch.nodes[number] = node
            if node is None:
                batch.answers[number] = exceptions.ClusterDownError(f"no node serves slot {batch.slots[number]}")
            else:
                groups.setdefault((node.name, asking), (node, []))[1].append(number)
        parts = []
        for (_, asking), (node, own) in groups.items():
            words = [word for n in own for word in ((("ASKING",), batch.words[n]) if asking else (batch.words[n],))]
            parts.append((node, words if batch.last is None else [*words, batch.last]))
        for ((_, asking), (node, own)), answers in zip(groups.items(), self._exchange_all(parts), strict=True):
            if isinstance(answers, Exception):
                self._note(node, answers)
            self._keep_answers(batch, own, answers, 2 if asking else 1)

    def _keep_answers(self, batch: _Batch, own: Sequence[int], answers: Any, step: int) -> None:
        """Store what a node answered; of ``step`` answers in a row, the last is that of a command."""
        failed = answers if isinstance(answers, Exception) else None
        for place, number in enumerate(own):
            batch.answers[number] = failed or answers[step * place + step - 1]
            batch.lasts[number] = failed or (None if batch.last is None else answers[-1])
        if failed is None and any(isinstance(batch.answers[number], DOWN) for number in own):
            self.refresh()

    def _exchange_all(self, parts: Sequence[tuple[Node, Sequence[Command]]]) -> list[Any]:
        """Send commands to several nodes, then read the answers of each; return for each its answers, or the error of
        its connection. After one node did not answer, the others have the rest of the same time."""
        found: list[Any] = [None] * len(parts)
        waiting: list[tuple[int, Exchange]] = []
        begun, deadline = time.monotonic(), None
        try:
            for number, (node, words) in enumerate(parts):
                try:
                    self._check_silence(node)
                    waiting.append((number, get_cache(self._connect(node).connection_pool).begin(words)))
                except FAILURES as error:
                    found[number] = error
            for number, exchange in waiting:
                try:
                    found[number] = exchange.finish(deadline)
                except FAILURES as error:
                    found[number], deadline = error, begun + self._timeout
        finally:
            for _, exchange in waiting:
                exchange.abandon()
        return found

    # Topology

    def _connect(self, node: Node) -> redis.Redis:
        found: redis.Redis = node.redis_connection or self._client.get_redis_connection(node)
        return found

    def _find_owner(self, slot: int) -> Node | None:
        """Return the node that serves a slot, None for none."""
        if not self._manager.slots_cache.get(slot):
            self.refresh()
        owners = self._manager.slots_cache.get(slot)
        return owners[0] if owners else None

    def _redirect(self, answer: Any, node: Node) -> Node | None:
        """Follow MOVED or ASK; return the node to ask, None for the owner of the slot."""
        answer.host, answer.port = self._manager.remap_host_port(answer.host or node.host, answer.port)
        with self._manager._lock:
            if isinstance(answer, exceptions.MovedError):
                self._manager.slots_cache.setdefault(answer.slot_id, [])
                self._manager.move_slot(answer)
                return None
            found = self._manager.nodes_cache.get(get_node_name(answer.host, answer.port))
            if found is None:
                found = _make_node(answer.host, answer.port, "primary")
                self._manager.nodes_cache[found.name] = found
            return found

    def _note(self, node: Node, error: Exception) -> None:
        """Read the topology anew after an error of a connection, and leave a node alone that did not answer in time."""
        if not isinstance(error, (*LOST, *DOWN)):
            return
        if isinstance(error, LOST):
            setattr(error, NODE, node.name)
        if isinstance(error, exceptions.TimeoutError) and not isinstance(error, LeftAlone):
            self._silent[node.name] = time.monotonic() + SILENCE
        self.refresh(node)

    def _check_silence(self, node: Node) -> None:
        """Raise LeftAlone for a node that did not answer a moment ago."""
        until = self._silent.get(node.name)
        if until is None:
            return
        if time.monotonic() >= until:
            self._silent.pop(node.name, None)
            return
        error = LeftAlone(f"{node.name} did not answer a moment ago")
        setattr(error, UNSENT, True)
        raise error

    def _forget_silences(self) -> bool:
        """Forget the nodes that were left alone long enough; return whether there are others."""
        now = time.monotonic()
        for name in [name for name, until in list(self._silent.items()) if now >= until]:
            self._silent.pop(name, None)
        return bool(self._silent)

    def refresh(self, failed: Node | None = None) -> None:
        """Read the topology from any known node or seed, ``failed`` last; at most once in ``REFRESH_EVERY``."""
        with self._lock:
            now = time.monotonic()
            if now < self._refreshed + REFRESH_EVERY:
                return
            self._refreshed = now
        known = set(self._manager.startup_nodes)
        seeds = [(host, port) for host, port in self._seeds if get_node_name(host, port) not in known]
        with contextlib.suppress(*FAILURES, LookupError):
            self._manager.initialize(
                additional_startup_nodes_info=seeds,
                disconnect_startup_nodes_pools=False,
                last_failed_node_name=None if failed is None else failed.name,
            )
        self._replace_default(failed)

    def _replace_default(self, failed: Node | None) -> None:
        """Make another primary the one that redis-py itself asks."""
        default = self._manager.default_node
        if failed is None or default is None or default.name != failed.name:
            return
        primaries: list[Node] = self._client.get_primaries()  # type: ignore[no-untyped-call]
        if others := [node for node in primaries if node.name != failed.name]:
            self._manager.default_node = others[0]


_make_node: Any = ClusterNode
_all: weakref.WeakSet[ClusterRouter] = weakref.WeakSet()


def _forget_connections() -> None:
    for router in list(_all):
        router._lock = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_forget_connections)
