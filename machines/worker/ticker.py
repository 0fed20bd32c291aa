"""Fires timers when they are due and delivers what instances send each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from machines.engine import Engine
from machines.engine.errors import SignalboxError

log = logging.getLogger(__name__)


class Ticker:
    """Every worker does this for all machines, also those it does not serve: the engine sees to it that each timer
    fires once and each message is applied once, whoever comes first.

    One round trip asks all machines what is due and when the next timer will be. It sleeps until then, ``pause``
    seconds at most: meanwhile a step may have armed an earlier one, or sent something without delivering it.
    """

    def __init__(
        self, engine: Engine, machines: Callable[[], Iterable[str]] | None = None, *, pause: float = 0.25
    ) -> None:
        self._engine = engine
        self._machines = machines or engine.machines
        self._pause = pause
        self._wait = pause
        self._faults: frozenset[str] = frozenset()

    def once(self) -> bool:
        """One pass over all machines; says whether anything moved. What is wrong with one keeps no other waiting."""
        driven = self._engine.drive(self._machines())
        self._wait = self._pause if driven.wait is None else min(self._pause, driven.wait / 1000)
        self._tell(driven.faults)
        return driven.moved > 0

    def pause(self) -> float:
        return self._wait

    def _tell(self, faults: Iterable[SignalboxError]) -> None:
        """Logs what is new: a pass comes several times a second."""
        found = frozenset(str(fault) for fault in faults)
        for fault in sorted(found - self._faults):
            log.error("not all timers and messages can be worked off: %s", fault)
        if self._faults and not found:
            log.warning("all timers and messages can be worked off again")
        self._faults = found
