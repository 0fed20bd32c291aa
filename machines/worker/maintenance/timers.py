"""Processes due work: timers, expired leases, delayed jobs, undelivered messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from machines.engine import Engine, errors

from .timer_waiter import TimerWaiter

log = logging.getLogger(__name__)


class DueWork:
    """Every worker does this for all machines, also those it does not serve: the engine sees to it that each timer
    fires once and each message is applied once, in whichever worker comes first.

    One call asks all machines what is due and when the next thing will be. The wait lasts until then, ``pause`` seconds
    at most: the worker that was to process it may have died meanwhile.
    """

    FAULTY = 1.0  # seconds: where something went wrong, the next try comes soon

    def __init__(
        self, engine: Engine, machines: Callable[[], Iterable[str]] | None = None, *, pause: float = 5.0
    ) -> None:
        self._engine = engine
        self._machines = machines or engine.machines
        self._pause = pause
        self._wait = pause
        self._doubts = True
        self._faults: frozenset[str] = frozenset()

    def once(self) -> bool:
        """One pass over all machines; says whether anything moved. What is wrong with one keeps no other waiting."""
        look, self._doubts = self._doubts, True
        driven = self._engine.drive(self._machines(), look=look)
        self._doubts = False
        wait = self._pause if driven.wait is None else min(self._pause, driven.wait / 1000)
        self._wait = min(wait, self.FAULTY) if driven.faults else wait
        self._tell(driven.faults)
        return driven.moved > 0

    def pause(self) -> float:
        return self._wait

    def doubt(self) -> None:
        """The next pass trusts no server's memory: it may be another server now, or one that was away meanwhile."""
        self._doubts = True

    def _tell(self, faults: Iterable[errors.SignalboxError]) -> None:
        """Logs what is new: a pass comes several times a second."""
        found = frozenset(str(fault) for fault in faults)
        for fault in sorted(found - self._faults):
            log.error("not all that is due can be worked off: %s", fault)
        if self._faults and not found:
            log.warning("all that is due can be worked off again")
        self._faults = found


class DueWorkLoop:
    """Ticks, and waits on the alarm where there is nothing to do."""

    def __init__(self, due_work: DueWork, timer_waiter: TimerWaiter) -> None:
        self._due_work = due_work
        self._timer_waiter = timer_waiter

    def once(self) -> bool:
        """A pass, and the wait after it: the next one may come at once."""
        if not self._due_work.once():
            try:
                self._timer_waiter.wait(self._due_work.pause())
            except errors.EngineUnavailable:
                self._due_work.doubt()
                raise
        return True

    def pause(self) -> float:
        return 0.0
