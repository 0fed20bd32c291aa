"""Makes ids that never repeat, in the text of ``flakes``: with a node number and ranges of time taken from Redis.

Redis hands out a node together with a range of time, and no two ranges of a node overlap (``sb_ids``). Ids are made
only with times within a range that was handed out, each place in it once. So neither a clock that steps back, here or
on the server, nor a process that was stopped for an hour, nor a node that somebody else has taken meanwhile makes one
twice. ``machines.patterns.ids`` is what callers beside the engine use.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from machines.engine import arguments
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, refuse
from machines.engine.errors import SignalboxError
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import PatternKeys

from .codec import EPOCH, IDS_PER_MS, SEQUENCE_BITS, encode_number

NAME = "ids"  # of the generator that the engine and the site share
LEASE = 10_000  # ms
PAUSES = 4  # in a lease: how long a renewal ahead of need that failed is not tried again


class NoNode(Exception):
    """All nodes are held. ``retry_after``: seconds until one is free, unless it is renewed."""

    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(f"all nodes are held; one may be free in {retry_after:g} s")


@dataclass(frozen=True, slots=True)
class Range:
    """What the server handed out: ids of ``node`` with times in [``start``, ``until``), ms. ``ahead``: what to add to
    this process's own clock, in ms, to have the server's."""

    node: int
    start: int
    until: int
    ahead: float


class Claims:
    """Asks one generator's key for nodes and ranges, on behalf of one holder."""

    def __init__(self, caller: Caller, name: str = NAME, prefix: str = PREFIX, *, now: Callable[[], int] | None = None):
        self._caller = caller
        self._root = PatternKeys(prefix).ids(name).root
        self._now = now

    def claim(self, token: str, node: int | None, lease: int) -> tuple[int, int, int, int]:
        """Node, from, until and the server's time, in ms. Raises NoNode, EngineUnavailable, EngineFault."""
        now = "" if self._now is None else arguments.encode_whole("now", self._now())
        held = "" if node is None else node
        reply = self._ask("claim", token, held, lease, now)
        if reply[1] == 0:
            raise NoNode(int(reply[2]) / 1000)
        return int(reply[2]), int(reply[3]), int(reply[4]), int(reply[5])

    def release(self, token: str, node: int) -> None:
        self._ask("release", token, node)

    def _ask(self, *words: str | int) -> list[int]:
        reply = self._caller.call("sb_ids", self._root, *words)
        if reply[0] != Status.OK:
            refuse("sb_ids", reply)
        return reply


class Generator:
    """Ids of one process. Safe to share between threads; a fork takes a node of its own.

    ``lease``: ms. ``clock``: seconds that only grow.
    """

    def __init__(self, claims: Claims, *, lease: int = LEASE, clock: Callable[[], float] = time.monotonic) -> None:
        self._claims = claims
        self._lease = lease
        self._clock = clock
        self._last = 0  # the place of the newest id: its ms and sequence as one number
        self._begin()
        _generators.add(self)

    def _begin(self) -> None:
        """With nothing at hand, as a process begins."""
        self._lock = threading.Lock()
        self._claiming = threading.Lock()
        self._token = os.urandom(8).hex()
        self._held: Range | None = None
        self._not_before = 0.0

    @property
    def held(self) -> Range | None:
        """The range at hand, also where it is used up."""
        return self._held

    def next(self) -> str:
        """One id: no call, or the one that takes the next range. Raises NoNode, EngineUnavailable, EngineFault."""
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """As many, in order; all of them or, when the next range cannot be had, none."""
        made = self._made(count)
        while len(made) < count:
            seen = self._held
            made += self._made(count - len(made))
            if len(made) < count:
                self._renew(seen)
        if self.is_due():
            self.renew_ahead()
        return made

    def at_hand(self) -> str | None:
        """An id of the range at hand; None where there is none. Never calls Redis and never waits for it."""
        made = self._made(1)
        return made[0] if made else None

    def is_due(self) -> bool:
        """Has the newest id come from the last half lease of the range?"""
        held = self._held
        return held is None or self._last >= (held.until - self._lease // 2) * IDS_PER_MS

    def renew_ahead(self) -> bool:
        """Take the next range before it is needed, unless somebody is at it or has failed a moment ago; whether there
        is one. Raises nothing."""
        if self._clock() < self._not_before or not self._claiming.acquire(blocking=False):
            return False
        try:
            if self.is_due() or self._ends_soon():  # else another thread has just done it: none is two leases ahead
                self._take()
            return True
        except (SignalboxError, NoNode):
            self._not_before = self._clock() + self._lease / 1000 / PAUSES
            return False
        finally:
            self._claiming.release()

    def close(self) -> None:
        """Give the node back. Where its ranges end stays known; the next id takes a node again."""
        with self._claiming:
            with self._lock:
                held, self._held = self._held, None
            if held is not None:
                self._claims.release(self._token, held.node)

    def _made(self, count: int) -> list[str]:
        """At most so many, of the range at hand."""
        with self._lock:
            held = self._held
            if held is None:
                return []
            first = max(self._last + 1, int(self._clock() * 1000 + held.ahead) * IDS_PER_MS, held.start * IDS_PER_MS)
            after = min(first + count, held.until * IDS_PER_MS)
            if after <= first:
                return []
            self._last = after - 1
        node = held.node << SEQUENCE_BITS
        return [
            encode_number((place >> SEQUENCE_BITS) - EPOCH << 22 | node | place & (IDS_PER_MS - 1))
            for place in range(first, after)
        ]

    def _ends_soon(self) -> bool:
        held = self._held
        return held is None or self._clock() * 1000 + held.ahead >= held.until - self._lease // 2

    def _renew(self, seen: Range | None) -> None:
        with self._claiming:
            if self._held is seen:  # else somebody else has done it
                self._take()

    def _take(self) -> None:
        held = self._held
        node, start, until, now = self._claims.claim(self._token, held.node if held else None, self._lease)
        ahead = now - self._clock() * 1000
        with self._lock:
            # The range that follows on the one at hand prolongs it: what is left of that is not lost.
            if held is not None and self._held is held and (held.node, held.until) == (node, start):
                start = held.start
            elif self._last >= until * IDS_PER_MS:  # of a range further ahead that nothing is known of any more
                self._last = start * IDS_PER_MS - 1
            self._held = Range(node, start, until, ahead)


def make_instance_id(generator: Generator, machine: str, key: str) -> str:
    """The id of a new instance: made of the key it is created with, so that the same call sent twice has the same, or
    else the generator's next; a random one where all nodes are held."""
    if key:
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{machine}:{key}").hex
    try:
        return generator.next()
    except NoNode:
        return uuid.uuid4().hex


_generators: weakref.WeakSet[Generator] = weakref.WeakSet()


def _forked() -> None:
    for generator in list(_generators):
        generator._begin()


os.register_at_fork(after_in_child=_forked)
