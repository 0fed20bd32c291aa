"""Fills a data index with instances from before the field was declared as indexed."""

from __future__ import annotations

import logging
import random

from machines.engine import Engine, errors

log = logging.getLogger(__name__)


class IndexBuilder:
    """Fills a machine's indexes, in small calls. Of several concurrent workers the first one fills, and the others
    leave it alone."""

    def __init__(self, engine: Engine, *, pause: float = 10.0) -> None:
        self._engine = engine
        self._pause = pause

    def once(self) -> bool:
        """All machines, one after the other. Says whether any was filled."""
        filled = False
        for machine in self._engine.machines():
            try:
                count = self._engine.fill_indexes(machine)
            except (errors.EngineFault, errors.LookupFailed) as fault:
                log.error("the indexes of %s cannot be filled: %s", machine, fault)
                continue
            if count is not None:
                filled = True
                log.info("the indexes of %s hold all instances now: %d looked at", machine, count)
        return filled

    def pause(self) -> float:
        """Not the same each time: workers that were started together need not look together."""
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret
