"""A lock across processes, with an owner, an expiry and a fencing number. Needs Redis and no Django.

    locks = Locks(engine.client, engine.keys.prefix)
    with locks.lock("nightly-report", ttl=30) as held:      # Taken, with retry_after, where another client has it
        with held.renewing():                               # a thread renews it each 10 s
            for page in pages:
                held.check()                                # Lost, before another client can have it
                write(page, fence=held.fence)               # UPDATE ... WHERE fence <= %s

It promises that of all clients that ask at once one gets the lock; that each later holder has a larger ``fence``, which
is drawn in the same call; that the lock is free again ``ttl`` seconds after it was taken or last renewed; that only its
holder renews or releases it; and that a call that is sent again because its answer was lost takes the lock once, not
twice.

No lock on a server can promise that its holder *stops* in time. A process may be paused (garbage collection, SIGSTOP, a
virtual machine that moves) between its last check of ``held.lost`` and its write, for longer than the lock lasts. Nor
can it promise to survive a failover: Redis copies to its replicas after it has answered, so a replica that takes over
may hand out a lock that is still held. ``WAIT`` makes that rarer, but does not exclude it. Therefore the resource
itself must refuse late writes: it keeps the largest fence that it has seen and accepts no smaller one. If it cannot, a
lock saves work (nothing is done twice) but does not ensure correctness. The fence is never less than the server's clock
(ms), so it keeps growing even if the key of the last one was lost, as long as clocks are not set back.

There is no queue: of the clients that wait, the first to ask after the end gets the lock. The lock is not reentrant: a
holder that acquires it again gets Taken at once.

The key of the holder is the same as that of redis-py's own ``redis.lock.Lock``, a token with an expiry, and the two
exclude each other. This module does not use that class, for five reasons. It takes the lock with SET NX, and a fence
drawn by a later INCR leaves a gap in which a slow holder draws the larger number. Its scripts need EVALSHA, which is
refused to an account that may only call functions. Its token is kept per thread, so that no other thread can renew. It
waits in equal steps. Its SET NX, sent again after a lost answer, is refused by the lock that it has just taken.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, EngineUnavailable, SignalboxError

from . import base
from .base import Lost, Overflow, Pattern, Taken

log = logging.getLogger(__name__)

TTL = 30.0  # seconds
MIN_TTL, MAX_TTL = 0.1, 86_400.0  # seconds: less is too short for a slow answer; more blocks too long after a crash
MAX_WAIT = 86_400.0  # seconds
MAX_OWNER = 150  # characters
MARGIN = 0.1  # of the time: the holder considers it lost so much earlier than the server
STEPS = (0.01, 1.0)  # seconds: the first and the longest pause of a waiting client; each is twice the previous one

# A clock that continues while the machine sleeps, if the system has one.
CLOCK: Callable[[], float] = time.monotonic
if hasattr(time, "CLOCK_BOOTTIME"):
    CLOCK = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock, with its ``fence``.

    ``since``: ms since the epoch by the server's clock; ``left``: seconds until the lock expires if it is not renewed,
    None: never.

    For a holder that uses redis-py's own Lock, ``owner`` is "", ``fence`` and ``since`` are 0.
    """

    owner: str
    fence: int
    since: int
    left: float | None


class Locks(Pattern):
    """Locks by name. Safe to share between threads."""

    def lock(self, name: str, *, ttl: float = TTL, owner: str | None = None) -> Lock:
        """Return a lock without sending anything. ``ttl``: seconds after which it expires unless it is renewed.
        ``owner``: shown to people, by default host and process id."""
        return Lock(self, name, ttl, f"{socket.gethostname()}:{os.getpid()}" if owner is None else owner)

    def peek(self, name: str, *, now: int | None = None) -> Holder | None:
        """Return the current holder, to show to people: by the time of an acquire the holder may be another."""
        return _holder(self._ask("sb_lock_peek", self._root(name), base.check_now(now)))

    def peeks(self, names: Iterable[str]) -> dict[str, Holder | None]:
        """Return the holders of many locks, in one round trip."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise BadInput(f"names of locks are a list of texts, not {names!r:.80}", code="SB401")
        wanted = list(names)
        replies = self._ask_all([("sb_lock_peek", self._root(name), ("",)) for name in wanted])
        return {name: _holder(reply) for name, reply in zip(wanted, replies, strict=True)}

    def _take(self, name: str, token: str, ms: int, owner: str, now: int | None) -> int:
        """Take a lock for Lock. Return the fence, or raise Taken."""
        also = (Status.CONFLICT, Status.FULL)
        reply = self._ask("sb_lock", self._root(name), token, ms, owner, base.check_now(now), also=also)
        if reply[0] == Status.FULL:
            raise Overflow(f"the lock {name} has no larger fence left: its last one is at 2^53")
        if reply[0] == Status.OK:
            return int(reply[1])
        left, fence, by = int(reply[1]), int(reply[2]), str(reply[3])
        ends = "without an end" if left < 0 else f"for {left / 1000:.1f} s, unless it is renewed"
        raise Taken(f"{_describe_holder(name, fence, by)} {ends}", retry_after=STEPS[1] if left < 0 else left / 1000)

    def _keep(self, name: str, token: str, ms: int, now: int | None) -> None:
        """Renew a lock for HeldLock. Raises Lost."""
        reply = self._ask("sb_lock_renew", self._root(name), token, ms, base.check_now(now), also=(Status.LOST,))
        if reply[0] == Status.LOST:
            held = bool(reply[1] or reply[2])
            raise Lost(
                _describe_holder(name, int(reply[1]), str(reply[2])) if held else f"the time of the lock {name} is over"
            )

    def _leave(self, name: str, token: str, now: int | None) -> bool:
        """Release a lock for HeldLock. Return whether it was still held."""
        reply = self._ask("sb_lock_release", self._root(name), token, base.check_now(now), also=(Status.LOST,))
        return bool(reply[0] == Status.OK)

    def _root(self, name: str) -> str:
        return self._keys.lock(base.check_name(name, "a lock's name")).root


class Lock:
    """One lock, not yet taken; ``with`` takes it without waiting. For one thread at a time."""

    def __init__(self, locks: Locks, name: str, ttl: float, owner: str, *, clock: Callable[[], float] = CLOCK) -> None:
        self.name = base.check_name(name, "a lock's name")
        self.owner = base.check_key(owner, "an owner", most=MAX_OWNER)
        self._ms = base.check_seconds(ttl, "ttl", least=MIN_TTL, most=MAX_TTL)
        self._locks = locks
        self._clock = clock
        self._held: HeldLock | None = None

    def acquire(self, *, wait: float = 0.0, now: int | None = None) -> HeldLock:
        """Acquire the lock; try again for ``wait`` seconds while another client has it. Raises Taken, EngineUnavailable
        (the lock may then be held, without a holder, until its time is over)."""
        until = self._clock() + base.check_number(wait, "wait", 0, MAX_WAIT)
        if self._held is not None and not self._held.over:
            message = f"the lock {self.name} is held by this very object: it is not reentrant"
            raise Taken(message, retry_after=self._held.left)
        token, step = secrets.token_hex(16), STEPS[0]
        while True:
            asked = self._clock()
            try:
                fence = self._locks._take(self.name, token, self._ms, self.owner, now)
            except Taken as taken:
                left = until - self._clock()
                if left <= 0:
                    raise
                time.sleep(min(random.uniform(step / 2, step), taken.retry_after + 0.001, left))  # noqa: S311  spreading load
                step = min(2 * step, STEPS[1])
            else:
                self._held = HeldLock(self._locks, self.name, self.owner, token, fence, self._ms, asked, self._clock)
                return self._held

    def __enter__(self) -> HeldLock:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            self._held.__exit__(kind, error, trace)


class HeldLock:
    """A lock that was taken. ``fence``: larger than that of any holder before. Safe to share between threads.

    As a context manager it is released at the end. Lost is raised there if it was lost meanwhile and nothing else was
    raised: another client may have worked at the same time.
    """

    def __init__(
        self, locks: Locks, name: str, owner: str, token: str, fence: int, ms: int, asked: float,
        clock: Callable[[], float] = CLOCK,
    ) -> None:  # fmt: skip
        self.name, self.owner, self.token, self.fence = name, owner, token, fence
        self._locks, self._ms, self._clock = locks, ms, clock
        self._until = self._end(asked)
        self._released = False
        self._changed = threading.Condition()

    @property
    def ttl(self) -> float:
        """Return the time of the lock in seconds."""
        return self._ms / 1000

    @property
    def left(self) -> float:
        """Return the seconds, by this process's own clock, until the lock counts as lost: a tenth of its time before
        the server gives it to others. 0 when it is lost, and after its release."""
        return 0.0 if self._released else max(0.0, self._until - self._clock())

    @property
    def lost(self) -> bool:
        """Tell whether the lock is lost, without a call. A lost lock stays lost. False after a release."""
        return not self._released and self.left == 0.0

    @property
    def over(self) -> bool:
        """Tell whether the lock is lost or released."""
        return self.left == 0.0

    def check(self) -> None:
        """Raise Lost where the lock is no longer held, without a call."""
        if self.over:
            raise Lost(f"the lock {self.name} (fence {self.fence}) {'was released' if self._released else 'is lost'}")

    def renew(self, *, now: int | None = None) -> None:
        """Hold the lock for its whole time again. Raises Lost where another client has it, or its time is over."""
        self.check()
        asked = self._clock()
        try:
            self._locks._keep(self.name, self.token, self._ms, now)
        except Lost:
            self._until = -float("inf")
            with self._changed:
                self._changed.notify_all()
            raise
        if not self.over:  # its time ran out during the call: a lost lock stays lost
            self._until = self._end(asked)

    @contextlib.contextmanager
    def renewing(self) -> Iterator[HeldLock]:
        """Have a thread renew the lock, each third of its time, as long as the context lasts or until it is lost. A
        renewal that cannot reach Redis is tried again until then. ``lost`` is right even while the thread waits."""
        stopped = threading.Event()
        thread = threading.Thread(target=self._keep_renewing, args=(stopped,), name=f"renews {self.name}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stopped.set()
            thread.join(1.0)  # not longer: a call may wait for a Redis that is down

    def _keep_renewing(self, stopped: threading.Event) -> None:
        pause = self.ttl / 3
        while not stopped.wait(min(pause, self.left)) and not self.over:
            try:
                self.renew()
                pause = self.ttl / 3
            except Lost as lost:
                log.warning("%s", lost)
                return
            except SignalboxError as error:
                log.warning("the lock %s could not be renewed: %s", self.name, error)
                pause = self.ttl / 10

    def wait(self, seconds: float) -> bool:
        """Wait so many seconds, or until the lock is lost; return whether it is still held."""
        until = self._clock() + base.check_number(seconds, "seconds", 0, MAX_WAIT)
        with self._changed:
            while not self.over and (pause := min(until - self._clock(), self.left)) > 0:
                self._changed.wait(pause)
        return not self.over

    def release(self, *, now: int | None = None) -> bool:
        """Release the lock; return whether it was still held: False where another client has it, or its time is
        over."""
        released = self._locks._leave(self.name, self.token, now)
        self._released = True
        with self._changed:
            self._changed.notify_all()
        return released

    def _end(self, asked: float) -> float:
        """Return when the lock ends, counted from before the call was sent: the server cannot have started earlier."""
        return asked + self._ms / 1000 * (1 - MARGIN)

    def __enter__(self) -> HeldLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._released:
            return
        lost = self.lost
        try:
            lost = not self.release() or lost
        except EngineUnavailable as gone:
            log.warning("the lock %s could not be released, and ends by itself: %s", self.name, gone)
        if lost and error is None:
            raise Lost(f"the lock {self.name} (fence {self.fence}) was lost before its work was done")


def _holder(reply: list[Any]) -> Holder | None:
    if len(reply) == 1:
        return None
    owner, fence, since, left = str(reply[1]), int(reply[2]), int(reply[3]), int(reply[4])
    return Holder(owner, fence, since, None if left < 0 else left / 1000)


def _describe_holder(name: str, fence: int, owner: str) -> str:
    who = f"{owner} (fence {fence})" if owner else "a lock of redis-py"
    return f"the lock {name} is held by {who}"
