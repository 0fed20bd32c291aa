"""Ids that sort by time and never repeat, and numbers that are handed out in blocks. Needs Redis and no Django.

    ids = Snowflakes(engine.client, "orders", prefix=engine.keys.prefix)
    id = ids.next()                    # '04h2pbk8c1000': 13 characters that sort as they were made
    made = decode(id)                  # Decoded(at=1795000000000, node=3, sequence=0)
    numbers = Blocks(engine.client, "invoices", size=1000)
    number = numbers.next()            # 1, 2, 3, ...: whole numbers, a thousand for one call
    text = numbers.next_text()         # '0000000000000002'

**Snowflakes** ask Redis once per lease for a node number and a range of time that no other process gets. Ids are made
in this process, with times inside that range. No two ids of one name are the same: not when a clock steps back, here or
on the server; not after this process was stopped for an hour; not when another process has taken its node; not after a
fork. Without Redis, ids continue until the range ends. Limits: the times of two processes differ by up to a lease, and
so does the order of their ids. A server that was restored, or that took over, may lack the last writes, so it begins
two leases ahead. That is enough if all users of the name have the same lease. Two such losses within a lease, one
together with a clock that was set back, or two servers that both take writes, can still hand out one range twice.

**Blocks** ask once in ``size`` numbers. They have no gaps only if no process ever ends: the rest of its block is lost
with a process. A server that lost its last writes hands out the blocks in them again, unless the first process that
asks was the one that had them. If that is not acceptable, use Snowflakes.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import islice

from machines.engine.connection.client import Client
from machines.engine.errors import BadInput
from machines.engine.ids import Claims, Decoded, Generator, NoNode, Range, decode
from machines.engine.keys import PREFIX

from . import base
from .base import Overflow, Pattern, Taken

__all__ = ["Blocks", "Decoded", "Range", "Snowflakes", "decode"]

MAX_MANY = 1_000_000
MAX_LEASE = 3600.0  # seconds
MIN_LEASE = 0.1
DIGITS = len(str(base.MAX_EXACT))


class Snowflakes(Pattern):
    """Unique ids under one ``name``. Safe to share between threads; a fork leases a node of its own.

    ``lease``: seconds of a range of time: how long ids go on without Redis (half of it at least), and how long the node
    of an ended process stays leased. ``now``: ms since the epoch in place of the server's clock; ``clock``: monotonic
    seconds. Makes no call before the first id.
    """

    def __init__(
        self,
        redis: Client,
        name: str = "ids",
        *,
        prefix: str = PREFIX,
        lease: float = 10.0,
        now: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(redis, prefix)
        self.name = base.check_name(name, "the name of a generator")
        ms = base.check_seconds(lease, "lease", least=MIN_LEASE, most=MAX_LEASE)
        if not callable(clock) or not (now is None or callable(now)):
            raise BadInput("now and clock are functions without arguments that tell the time", code="SB402")
        claims = Claims(self._caller, self.name, prefix, now=now)
        self._generator = Generator(claims, lease=ms, clock=clock)

    def next(self) -> str:
        """Make one id, mostly without a call and never with more than one.

        Raises Taken when 1024 processes hold all nodes, EngineUnavailable when the range is used up and Redis cannot be
        used, EngineFault for a key of another type.
        """
        return self.many(1)[0]

    def many(self, n: int) -> list[str]:
        """Make ``n`` ids, 1 to 1,000,000, in order. All or, with the errors of ``next``, none."""
        base.check_whole(n, "n", 1, MAX_MANY)
        try:
            return self._generator.many(n)
        except NoNode as error:
            message = f"all 1024 nodes of {self.name} are held; one may be free in {error.retry_after:g} s"
            raise Taken(message, retry_after=error.retry_after) from None

    @property
    def held(self) -> Range | None:
        """Return the leased node and range, None before the first id."""
        return self._generator.held

    def close(self) -> None:
        """Release the node; the next id leases one again. Leased ranges are not handed out again."""
        self._generator.close()


class Blocks(Pattern):
    """Whole numbers from 1 under one ``name``, each handed out once, ``size`` of them for a call.

    Safe to share between threads; a fork takes blocks of its own.
    """

    def __init__(self, redis: Client, name: str, *, size: int = 1000, prefix: str = PREFIX) -> None:
        super().__init__(redis, prefix)
        self.name = base.check_name(name, "the name of a sequence")
        self._size = base.check_whole(size, "size", 1, MAX_MANY)
        self._root = self._keys.block(self.name).root
        self._known = 1  # the first number that, as far as this process knows, was not handed out
        self._begin()
        _blocks.add(self)

    def _begin(self) -> None:
        """Start with no ids in stock, as a new process does."""
        self._taking = threading.Lock()
        self._use(iter(range(0)))

    def _use(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._step = numbers.__next__  # one step in C: no two threads get the same number, without a lock

    def next(self) -> int:
        """Return the next number. Raises EngineUnavailable when the block is used up and Redis cannot be used,
        Overflow where the next block would pass 2**53, EngineFault for a key of another type."""
        try:
            return self._step()
        except StopIteration:
            return self._after_next_block()

    def next_text(self) -> str:
        """Return the next number with leading zeros, so that texts sort as the numbers do."""
        return f"{self.next():0{DIGITS}d}"

    def many(self, n: int) -> list[int]:
        """Return ``n`` numbers, 1 to 1,000,000, in order, first those of the current block. All or, with the errors
        of ``next``, none."""
        base.check_whole(n, "n", 1, MAX_MANY)
        with self._taking:
            made = list(islice(self._numbers, n))
            missing = n - len(made)
            if missing:
                made += self._take_block(missing, made)
        return made

    def _take_block(self, missing: int, made: list[int]) -> range:
        size = max(missing, self._size)
        try:
            first = self._take(size)
        except Exception:
            self._use(iter(made))  # they were not handed out, so they are available again
            raise
        self._use(iter(range(first + missing, first + size)))
        return range(first, first + missing)

    def _after_next_block(self) -> int:
        """Return the first number of the next block, or the next one of a block that another thread took meanwhile."""
        with self._taking:
            for number in self._numbers:
                return number
            first = self._take(self._size)
            self._use(iter(range(first + 1, first + self._size)))
            return first

    def _take(self, size: int) -> int:
        reply = self._ask("sb_ids_block", self._root, size, self._known)
        if reply[1] == 0:
            raise Overflow(f"{self.name} has {reply[2]} numbers left below 2**53, and a block is {size}")
        self._known = int(reply[2]) + size
        return int(reply[2])


_blocks: weakref.WeakSet[Blocks] = weakref.WeakSet()


def _forget_ranges() -> None:
    for blocks in list(_blocks):
        blocks._begin()


os.register_at_fork(after_in_child=_forget_ranges)
