"""Makes ids that never repeat, from node numbers and ranges of time leased from Redis: 13 characters that sort by time.

63 bits: 41 of ms since 2024-01-01, 10 of the node that made it, 12 of a sequence. The 32 characters of the alphabet are
in the order of ASCII and leave out letters that are mistaken for others: texts compare as the numbers do, and
JavaScript, which has no exact number of that size, can keep the text.

An id made without Redis begins with ``z``, which no other id does: 41 bits of ms and 19 random bits. Two of them can be
equal by chance, but never equal to an id made by a node.
"""

import os
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import require_ok
from machines.engine.connection.retries import skip_notes
from machines.engine.errors import SignalboxError
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import PatternKeys

EPOCH = 1_704_067_200_000  # ms since 1970: 2024-01-01
END = EPOCH + 2**41  # ms: in 2093
NODES = 1024
SEQUENCE_BITS, NODE_BITS, RANDOM_BITS = 12, 10, 19
IDS_PER_MS = 2**SEQUENCE_BITS  # ids that a node can make in a ms
LENGTH = 13
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SHAPE = re.compile(f"[0-7][{ALPHABET}]{{12}}|z[{ALPHABET}]{{12}}", re.ASCII)
LOCAL = "z"

_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_VALUE = {sign: value for value, sign in enumerate(ALPHABET)}


@dataclass(frozen=True, slots=True)
class Decoded:
    """The parts of an id. ``at``: ms since the epoch. In an id made without Redis ``node`` is None and ``sequence``
    is random."""

    at: int
    node: int | None
    sequence: int


def encode(at: int, node: int, sequence: int) -> str:
    """Encode an id. ``at``: ms since the epoch, from ``EPOCH`` on and before ``END``; not checked."""
    return encode_number((at - EPOCH) << 22 | node << SEQUENCE_BITS | sequence)


def encode_local(at: int, noise: int) -> str:
    """Encode an id made without Redis. ``noise``: a random number below 2**19."""
    return LOCAL + encode_number((at - EPOCH) << RANDOM_BITS | noise)[1:]


def encode_number(number: int) -> str:
    """Encode a number below 2**63."""
    pairs = _PAIRS
    return (
        ALPHABET[number >> 60] + pairs[number >> 50 & 1023] + pairs[number >> 40 & 1023] + pairs[number >> 30 & 1023]
        + pairs[number >> 20 & 1023] + pairs[number >> 10 & 1023] + pairs[number & 1023]
    )  # fmt: skip


def is_id(text: object) -> bool:
    """Tell whether a value has the form of an id."""
    return isinstance(text, str) and SHAPE.fullmatch(text) is not None


def decode(text: object) -> Decoded:
    """Decode an id. Raises BadInput."""
    why = None if is_id(text) else f"is not {LENGTH} characters of {ALPHABET}, the first 0 to 7 or z"
    text = arguments.check_name("id", text, why)
    if text[0] == LOCAL:
        number = _number(text[1:])
        return Decoded(EPOCH + (number >> RANDOM_BITS), None, number & (2**RANDOM_BITS - 1))
    number = _number(text)
    return Decoded(EPOCH + (number >> 22), number >> SEQUENCE_BITS & (NODES - 1), number & (IDS_PER_MS - 1))


def _number(text: str) -> int:
    number = 0
    for sign in text:
        number = number << 5 | _VALUE[sign]
    return number


NAME = "ids"  # the name of the generator that the engine and the site share
LEASE = 10_000  # ms
PAUSES = 4  # a failed early renewal is tried again after this part of a lease


class NoNode(Exception):
    """All nodes are leased. ``retry_after``: seconds until one is free, unless it is renewed."""

    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(f"all nodes are held; one may be free in {retry_after:g} s")


@dataclass(frozen=True, slots=True)
class Range:
    """A leased range: ids of ``node`` with times in [``start``, ``until``), ms. ``ahead``: ms to add to this
    process's own clock to get the server's."""

    node: int
    start: int
    until: int
    ahead: float


class Claims:
    """Leases nodes and ranges of one generator on the server."""

    def __init__(self, caller: Caller, name: str = NAME, prefix: str = PREFIX, *, now: Callable[[], int] | None = None):
        self._caller = caller
        self._root = PatternKeys(prefix).ids(name).root
        self._now = now

    def claim(self, token: str, node: int | None, lease: int) -> tuple[int, int, int, int]:
        """Lease a range; return node, start, end and the server's time, in ms. Raises NoNode, EngineUnavailable,
        EngineFault."""
        now = "" if self._now is None else arguments.encode_whole("now", self._now())
        held = "" if node is None else node
        reply = self._call("claim", token, held, lease, now)
        if reply[1] == 0:
            raise NoNode(int(reply[2]) / 1000)
        return int(reply[2]), int(reply[3]), int(reply[4]), int(reply[5])

    def release(self, token: str, node: int) -> None:
        """Give a node back."""
        self._call("release", token, node)

    def _call(self, *words: str | int) -> list[int]:
        with skip_notes():  # a range that nobody uses does no harm
            return require_ok("sb_ids", self._caller.call("sb_ids", self._root, *words))


class Generator:
    """Makes the ids of one process. Safe to share between threads; a fork leases a node of its own.

    ``lease``: ms. ``clock``: monotonic seconds.
    """

    def __init__(self, claims: Claims, *, lease: int = LEASE, clock: Callable[[], float] = time.monotonic) -> None:
        self._claims = claims
        self._lease = lease
        self._clock = clock
        self._last = 0  # the position of the newest id: its ms and sequence as one number
        self._reset()
        _generators.add(self)

    def _reset(self) -> None:
        """Begin without a range, as a new process does."""
        self._lock = threading.Lock()
        self._claiming = waiting.Lock()  # held over a round trip
        self._token = os.urandom(8).hex()
        self._held: Range | None = None
        self._not_before = 0.0

    @property
    def held(self) -> Range | None:
        """Return the leased range, even when it is used up."""
        return self._held

    def next(self) -> str:
        """Make one id, with at most one round trip. Raises NoNode, EngineUnavailable, EngineFault."""
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """Make ``count`` ids in order; raise, and make none, when the next range cannot be leased."""
        made = self._make(count)
        while len(made) < count:
            seen = self._held
            made += self._make(count - len(made))
            if len(made) < count:
                self._renew(seen)
        if self.is_due():
            self.renew_ahead()
        return made

    def next_local(self) -> str | None:
        """Make an id of the held range without calling Redis or waiting for it; None where there is none left."""
        made = self._make(1)
        return made[0] if made else None

    def is_due(self) -> bool:
        """Tell whether the newest id is in the last half lease of the range."""
        held = self._held
        return held is None or self._last >= (held.until - self._lease // 2) * IDS_PER_MS

    def renew_ahead(self) -> bool:
        """Lease the next range before it is needed, unless another thread does so or failed a moment ago; return
        whether there is one. Raises nothing."""
        if self._clock() < self._not_before or not self._claiming.acquire(blocking=False):
            return False
        try:
            if self.is_due() or self._ends_soon():  # else another thread has just renewed: no range is two leases ahead
                self._lease_range()
            return True
        except (SignalboxError, NoNode):
            self._not_before = self._clock() + self._lease / 1000 / PAUSES
            return False
        finally:
            self._claiming.release()

    def close(self) -> None:
        """Give the node back. The server remembers where its ranges end; the next id leases a node again."""
        with self._claiming:
            with self._lock:
                held, self._held = self._held, None
            if held is not None:
                self._claims.release(self._token, held.node)

    def _make(self, count: int) -> list[str]:
        """Make up to ``count`` ids of the held range."""
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
            if self._held is seen:  # else another thread has renewed
                self._lease_range()

    def _lease_range(self) -> None:
        held = self._held
        node, start, until, now = self._claims.claim(self._token, held.node if held else None, self._lease)
        ahead = now - self._clock() * 1000
        with self._lock:
            # A range that follows the held one prolongs it, so that the rest of the held one is not lost.
            if held is not None and self._held is held and (held.node, held.until) == (node, start):
                start = held.start
            elif self._last >= until * IDS_PER_MS:  # a position in a later range, which was given back
                self._last = start * IDS_PER_MS - 1
            self._held = Range(node, start, until, ahead)


def make_instance_id(generator: Generator, machine: str, key: str) -> str:
    """Make the id of a new instance: from its idempotency key, so that the same call sent twice has the same id,
    else the generator's next; a random one where all nodes are leased."""
    if key:
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{machine}:{key}").hex
    try:
        return generator.next()
    except NoNode:
        return uuid.uuid4().hex


_generators: weakref.WeakSet[Generator] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for generator in list(_generators):
        generator._reset()


os.register_at_fork(after_in_child=_reset_after_fork)
