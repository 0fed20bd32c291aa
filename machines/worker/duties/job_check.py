"""The slow full check of every job. It repairs jobs that were damaged from outside, and reports them."""

from __future__ import annotations

import logging
import random

from machines.engine import Engine, MendReport, errors
from machines.engine.jobs.mending import MendWalk

log = logging.getLogger(__name__)


class JobCheck:
    """Walks over the jobs of all machines, one small step now and then: a million jobs take hours, a few are seen every
    five minutes. Where something was mended the next step comes at once: there may be more.
    """

    REST = 20  # pauses between two walks

    def __init__(self, engine: Engine, *, pause: float = 15.0) -> None:
        self._engine = engine
        self._pause = pause
        self._walk: MendWalk | None = None
        self._faults: frozenset[str] = frozenset()  # of the walk before
        self._met: set[str] = set()

    def once(self) -> bool:
        """Make one step. Tell whether it mended anything and there are more."""
        walk, self._walk = self._walk or self._engine.mending(), None
        try:
            found, over = walk.step(), walk.over
        except errors.EngineFault as fault:  # an account that may not use SCAN, for one: that is logged, and not forced
            found, over = MendReport(faults=(str(fault),)), True
        self._log(found)
        if over:
            self._faults, self._met = frozenset(self._met), set()
            return False
        self._walk = walk
        return found.total > 0

    def pause(self) -> float:
        """Vary the pause: workers that were started together need not look together."""
        pauses = self.REST if self._walk is None else 1
        return self._pause * pauses * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret

    def _log(self, found: MendReport) -> None:
        """Log once what cannot be mended, and not in each walk."""
        if found.total:
            log.warning("jobs were not where they belong; mended: %s", found)
        for fault in found.faults:
            if fault not in self._faults | self._met:
                log.error("jobs cannot be mended: %s", fault)
        self._met.update(found.faults)
