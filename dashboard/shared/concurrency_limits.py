"""Limits concurrent requests of an event loop: in all, for each address, and for each caller.

Each takes a thread, and all threads share one interpreter: past some number more of them only make each of them
slower, those of other people too. So they wait here, on the event loop, where waiting costs next to nothing. Who comes
next is decided by turns: of addresses first, then of the callers behind one. A caller with a hundred requests holds up
their own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class PerLoop(Generic[Kept]):
    """Returns the object of the running event loop, which is made at the first call. ``kept``: loop -> its object."""

    def __init__(self, make: Callable[[], Kept]) -> None:
        self._make = make
        self.kept: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Kept] = weakref.WeakKeyDictionary()

    def __call__(self) -> Kept:
        loop = asyncio.get_running_loop()
        if loop not in self.kept:
            self.kept[loop] = self._make()
        return self.kept[loop]


class Crowded(Exception):
    """More wait already than may. ``own``: of that caller or address; else in all."""

    def __init__(self, own: bool) -> None:
        super().__init__("too many requests of yours wait" if own else "too many requests wait")
        self.own = own


@dataclass(frozen=True, slots=True)
class Slots:
    """How many may be worked on, and how many may wait: in all, of an address, of a caller."""

    running: int
    running_address: int
    running_caller: int
    waiting: int
    waiting_address: int
    waiting_caller: int

    @classmethod
    def of(cls, threads: int) -> Slots:
        """Return the slots: an address gets half of the threads, a caller a quarter. The number of requests that may
        wait is 16 times the threads in all, 4 times of an address, and twice of a caller."""
        address, caller = max(1, threads // 2), max(1, threads // 4)
        return cls(threads, address, caller, 16 * threads, 4 * threads, 2 * threads)


under: ContextVar[tuple[ConcurrencyLimits, str, str] | None] = ContextVar("gate", default=None)
"""The gate that this request came through, its address and its caller; None where it came through none."""
AGAIN = 0.1  # seconds until a piece of an answer tries again for a turn


@asynccontextmanager
async def another_turn() -> AsyncIterator[None]:
    """Wait for a turn to compute a piece of an answer while the rest is sent: the turn of the request itself is over
    then."""
    held = under.get()
    if held is None:
        yield
        return
    turn = await _wait_for_turn(*held)
    try:
        await turn.granted
        yield
    finally:
        turn.leave()


async def _wait_for_turn(gate: ConcurrencyLimits, address: str, caller: str) -> Turn:
    while True:
        try:
            return gate.enter(address, caller)
        except Crowded:
            await asyncio.sleep(AGAIN)


class Turn:
    """Holds the turn of one request. ``granted`` is done when work may begin; ``leave`` gives the place to the next."""

    __slots__ = ("_gate", "_left", "address", "caller", "granted")

    def __init__(self, gate: ConcurrencyLimits, address: str, caller: str) -> None:
        self._gate = gate
        self._left = False
        self.address, self.caller = address, caller
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self) -> None:
        """Leave, whether the turn was granted or still waits; a second call does no harm."""
        if not self._left:
            self._left = True
            self._gate._leave(self)


class ConcurrencyLimits:
    """Limits the requests of one event loop. The same cookie from two addresses counts as two callers."""

    def __init__(self, room: Slots) -> None:
        self._room = room
        self._running: Counter[tuple[str, ...]] = Counter()  # of (), (address,), (address, caller)
        self._waiting: OrderedDict[str, OrderedDict[str, deque[Turn]]] = OrderedDict()
        self._waits: Counter[tuple[str, ...]] = Counter()

    def enter(self, address: str, caller: str) -> Turn:
        """Return a turn, granted at once if there is room. Raises Crowded."""
        turn = Turn(self, address, caller)
        if self._has_room(turn):
            self._grant(turn)
            return turn
        self._check_queue(turn)
        line = self._waiting.setdefault(address, OrderedDict()).setdefault(caller, deque())
        line.append(turn)
        self._count(self._waits, turn, 1)
        return turn

    @property
    def running(self) -> int:
        return self._running[()]

    @property
    def waiting(self) -> int:
        return self._waits[()]

    def _has_room(self, turn: Turn) -> bool:
        room, running = self._room, self._running
        return (
            running[()] < room.running
            and running[(turn.address,)] < room.running_address
            and running[(turn.address, turn.caller)] < room.running_caller
        )

    def _check_queue(self, turn: Turn) -> None:
        room, waits = self._room, self._waits
        if waits[(turn.address, turn.caller)] >= room.waiting_caller or waits[(turn.address,)] >= room.waiting_address:
            raise Crowded(own=True)
        if waits[()] >= room.waiting:
            raise Crowded(own=False)

    def _grant(self, turn: Turn) -> None:
        self._count(self._running, turn, 1)
        turn.granted.set_result(None)

    def _leave(self, turn: Turn) -> None:
        if turn.granted.done() and not turn.granted.cancelled():
            self._count(self._running, turn, -1)
            self._admit()
        else:
            turn.granted.cancel()
            self._remove(turn)

    def _admit(self) -> None:
        while self._running[()] < self._room.running and (turn := self._choose_next()) is not None:
            self._remove(turn)
            self._grant(turn)

    def _choose_next(self) -> Turn | None:
        """Return the next turn: of the address that has waited longest, that of the caller who has. Those at their
        limit are passed over."""
        for address, lines in self._waiting.items():
            if self._running[(address,)] >= self._room.running_address:
                continue
            for caller, line in lines.items():
                if self._running[(address, caller)] < self._room.running_caller:
                    lines.move_to_end(caller)
                    self._waiting.move_to_end(address)
                    return line[0]
        return None

    def _remove(self, turn: Turn) -> None:
        lines = self._waiting[turn.address]
        line = lines[turn.caller]
        line.remove(turn)
        if not line:
            del lines[turn.caller]
        if not lines:
            del self._waiting[turn.address]
        self._count(self._waits, turn, -1)

    @staticmethod
    def _count(counter: Counter[tuple[str, ...]], turn: Turn, by: int) -> None:
        for key in ((), (turn.address,), (turn.address, turn.caller)):
            counter[key] += by
            if not counter[key]:
                del counter[key]
