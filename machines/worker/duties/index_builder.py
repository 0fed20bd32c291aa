"""Fills a data index with instances from before the field was declared as indexed."""

from __future__ import annotations

import logging
import random
import time

from machines.engine import Engine, errors
from machines.engine.storage import Storage

log = logging.getLogger(__name__)

REREAD = 300.0  # seconds after which all machines are looked at, whatever the revision of the catalog says


class IndexBuilder:
    """Fills a machine's indexes, in small calls. Of several concurrent workers the first one fills, and the others
    leave it alone."""

    def __init__(self, engine: Engine, *, pause: float = 10.0) -> None:
        self._engine = engine
        self._pause = pause
        self._complete: tuple[str, float] | None = None  # catalog's revision when all indexes were complete; since when

    def once(self) -> bool:
        """Walk all machines, one after the other. Tell whether any index was filled."""
        revision, now = self._engine.catalog_revision(), time.monotonic()
        if self._complete is not None and self._complete[0] == revision and now - self._complete[1] < REREAD:
            return False
        filled = self._fill_all()
        self._complete = None if filled or self._waits else (revision, now)
        return filled

    def _fill_all(self) -> bool:
        filled, self._waits = False, False
        for machine in self._list_incomplete():
            try:
                count = self._engine.fill_indexes(machine)
            except (errors.EngineFault, errors.LookupFailed) as fault:
                log.error("the indexes of %s cannot be filled: %s", machine, fault)
                self._waits = True
                continue
            if count is not None:
                filled = True
                log.info("the indexes of %s hold all instances now: %d looked at", machine, count)
        return filled

    def _list_incomplete(self) -> list[str]:
        """List the machines whose first partition names an index that is not filled, in one round trip; all of them
        where one cannot be read."""
        names = self._engine.machines()
        metas = [self._engine.keys.partition(name).meta for name in names]
        try:
            answers = Storage(self._engine.client).commands([(meta, ("HGET", meta, "by")) for meta in metas])
        except (errors.EngineFault, errors.EngineUnavailable):
            return list(names)
        return [name for name, indexes in zip(names, answers, strict=True) if ":0" in (indexes or "")]

    def pause(self) -> float:
        """Vary the pause: workers that were started together need not look together."""
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret
