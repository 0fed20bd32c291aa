"""Runs each exclusive duty in one worker at a time: the holder of a duty's lock runs it and renews the lock."""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, runtime_checkable

from machines.connections import is_spread
from machines.engine import errors
from machines.engine.errors import EngineUnavailable
from machines.patterns import HeldLock, Holder, Locks, Lost, Taken

from ..reconnect import Backoff

log = logging.getLogger(__name__)

TTL = 15.0  # seconds after which a duty is another worker's when the one that had it is not heard of
LOOK = 30.0  # seconds between two looks of a duty's thread at whether it is this worker's turn, should nobody wake it
LONGEST = 600.0  # seconds of one pass after which its worker is taken to be stuck and lets go of the duty


class Duty(Protocol):
    def run_once(self) -> bool:
        """Make one pass; tell whether it found work."""

    def pause(self) -> float:
        """Return seconds to wait after a pass that found none."""


@runtime_checkable
class Wakeable(Protocol):
    def on_call(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, which ends the pause of the duty."""


class Periodic:
    """Runs a duty in a thread: at once again while it finds work, else after its pause."""

    def __init__(self, name: str, duty: Duty, *, backoff: float) -> None:
        self._name = name
        self._duty = duty
        self._backoff = Backoff(backoff)
        self._woken = threading.Condition()
        self._wanted = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        if isinstance(duty, Wakeable):
            duty.on_call(self.wake)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Start the next pass now."""
        with self._woken:
            self._wanted = True
            self._woken.notify_all()

    def stop(self, seconds: float = 1.0) -> None:
        with self._woken:
            self._stopped = True
            self._woken.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopped:
            pause = self._pass()
            with self._woken:
                self._woken.wait_for(lambda: self._wanted or self._stopped, pause)
                self._wanted = False

    def _pass(self) -> float:
        """Make one pass; return how long to wait after it."""
        try:
            found = self._duty.run_once()
        except (errors.EngineUnavailable, errors.LibraryNotLoaded) as error:  # the loop that takes jobs says it
            log.debug("%s: %s", self._name, error)
            return self._backoff.next()
        except Exception:
            log.exception("%s failed; it goes on", self._name)
            return self._backoff.next()
        self._backoff.reset()
        return 0.0 if found else self._duty.pause()


def lock_name(duty: str) -> str:
    return f"house.{duty.replace(' ', '-')}"


def read_lock_holders(locks: Locks, duties: Iterable[str]) -> dict[str, Holder | None]:
    """Return who has each duty now, in one round trip. ``Holder.owner`` is the id of a worker. Duties whose shard of a
    cluster does not answer are left out. Raises EngineUnavailable."""
    names = list(duties)
    try:
        found = locks.peeks(lock_name(name) for name in names)
    except EngineUnavailable:
        if not is_spread():
            raise
        found = {}
        for name in names:
            with contextlib.suppress(EngineUnavailable):
                found |= locks.peeks([lock_name(name)])
    return {name: found[lock_name(name)] for name in names if lock_name(name) in found}


class Scheduler:
    """Shares duties out among workers: each pass renews the locks this one holds, and asks for those that are free.

    The lock is for economy: that ten workers do not look at one thing ten times. A worker that was stopped for a while
    may still be in the middle of a pass when another begins with one, so that each duty's own compare and set is what
    makes it correct.
    """

    def __init__(
        self, locks: Locks, duties: Mapping[str, Duty], owner: str, *, ttl: float = TTL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._ttl = ttl
        self._turns = {name: Turn(locks, name, duty, owner, ttl, clock) for name, duty in duties.items()}

    @property
    def duties(self) -> dict[str, Duty]:
        """For one thread each: the scheduler, and each duty, which does nothing where it is not this worker's turn."""
        return {"scheduler": self, **self._turns}

    def run_once(self) -> bool:
        """Make one pass over all locks. There is never more to do at once: False."""
        failed = None
        for turn in self._turns.values():
            try:
                turn.keep()
            except errors.EngineUnavailable:
                raise  # for one lock it is as for all: each would cost its whole time
            except errors.SignalboxError as error:
                failed = error  # one that is damaged must not cost the others theirs
        if failed is not None:
            raise failed
        return False

    def pause(self) -> float:
        """Return seconds: a third of the time, or until the first lock of another ends if it is not renewed."""
        ends = min((turn.ends for turn in self._turns.values()), default=self._ttl)
        return min(self._ttl / 3, ends) * random.uniform(0.9, 1.0) + 0.01  # noqa: S311  spreading load, not a secret

    def leave(self) -> None:
        """Let go of all of them, for others to take at once. A lock whose release Redis does not hear of ends by
        itself."""
        for turn in self._turns.values():
            try:
                turn.leave()
            except errors.EngineUnavailable as error:
                log.warning("duties could not be given up: %s; others have them in %g s", error, self._ttl)
                return
            except errors.SignalboxError as error:
                log.warning("a duty could not be given up: %s", error)


class Turn:
    """One duty. ``keep`` and ``leave`` are called by the scheduler's thread, ``once`` and ``pause`` by the duty's."""

    def __init__(self, locks: Locks, name: str, duty: Duty, owner: str, ttl: float, clock: Callable[[], float]) -> None:
        self._lock = locks.lock(lock_name(name), ttl=ttl, owner=owner)
        self._name, self._duty, self._ttl, self._clock = name, duty, ttl, clock
        self._held: HeldLock | None = None
        self._wake: Callable[[], object] = lambda: None
        self._began: float | None = None  # of the pass under way
        self._rests = -float("inf")  # until when others are to have it, who may get further
        self.ends = ttl  # seconds until another's lock ends, as Redis last said

    def on_call(self, wake: Callable[[], None]) -> None:
        """Have ``wake`` called when it becomes this worker's turn."""
        self._wake = wake

    @property
    def is_mine(self) -> bool:
        return self._held is not None and not self._held.over

    def run_once(self) -> bool:
        """Make a pass of the duty where it is this worker's turn. A pass that fails leaves the duty to others for a
        while."""
        if not self.is_mine:
            return False
        self._began = self._clock()
        try:
            return self._duty.run_once()
        except errors.EngineUnavailable:
            raise
        except Exception:
            self._rests = self._clock() + self._ttl
            raise
        finally:
            self._began = None

    def pause(self) -> float:
        return self._duty.pause() if self.is_mine else LOOK

    def keep(self) -> None:
        """Renew the lock, let go of it where the duty does not get on, or ask for it where it is another's."""
        self.ends = self._ttl
        if self.is_mine:
            if self._is_stuck():
                log.error("%s has been at one pass for %g s: another worker may have it", self._name, LONGEST)
                self.leave()
            elif self._clock() < self._rests:
                self.leave()
            else:
                self._renew()
        elif self._clock() >= self._rests and not self._is_stuck():
            self._ask()

    def leave(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()  # also where it may be lost: to ask is cheaper than to let others wait

    def _is_stuck(self) -> bool:
        began = self._began
        return began is not None and self._clock() - began > LONGEST

    def _renew(self) -> None:
        held = self._held
        assert held is not None
        try:
            held.renew()
        except Lost as lost:
            log.warning("%s is another worker's now: %s", self._name, lost)

    def _ask(self) -> None:
        try:
            self._held = self._lock.acquire()
        except Taken as taken:
            self.ends = max(0.0, taken.retry_after)
        else:
            log.info("%s is this worker's turn now, fence %d", self._name, self._held.fence)
            self._wake()
