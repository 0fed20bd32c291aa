"""Exclusive duties that need Redis alone: those of a worker without Django. One with Django has more beside them."""

import logging
import random
import time
from collections.abc import Callable

from machines.engine import Engine, MendReport, Rollout, errors
from machines.engine.jobs.mending import MendWalk
from machines.engine.storage import Storage
from machines.engine.transfer.repartitioning import rescue_all

from ..options import Options
from .exclusive_duties import Duty

log = logging.getLogger(__name__)

ACTOR = "worker"
REREAD = 60.0  # seconds after which machines that changed are looked at, whatever the revision of the catalog says
WHOLE = 3600.0  # seconds after which all machines are
RECHECK = 300.0  # seconds after which complete indexes are looked at again, whatever that revision says


def ignore(rollout: Rollout) -> None:
    """Report to nobody: the log and the record of the roll-out say why it was stopped."""


class RolloutGuard:
    """Compares the figures of versions that are rolled out, every few seconds. ``report`` is called with a roll-out
    that the guard stopped."""

    def __init__(self, engine: Engine, report: Callable[[Rollout], None] = ignore, *, pause: float = 5.0) -> None:
        self._engine = engine
        self._report = report
        self._pause = pause
        self._seen: tuple[str, float] | None = None  # the catalog's revision, and when all machines were read
        self._watched: list[str] = []
        self._changes = engine.wakeups.watch_changes(whole=WHOLE)
        self._unsettled: set[str] = set()  # machines to look at beside those that changed

    def run_once(self) -> bool:
        """Look at every roll-out; there is never more to do at once: False."""
        revision, now = self._engine.catalog_revision(), time.monotonic()
        if self._seen is None or self._seen[0] != revision or now - self._seen[1] >= REREAD:
            self._read_machines()
            self._seen = revision, now
        for machine in list(self._watched):
            try:
                self._guard(machine)
            except (errors.EngineFault, errors.LookupFailed) as fault:
                log.error("the roll-out of %s cannot be compared: %s", machine, fault)
        return False

    def _guard(self, machine: str) -> None:
        stopped = self._engine.guard_rollout(machine, actor=ACTOR)
        if stopped is not None:
            self._watched.remove(machine)
            log.warning("the roll-out of %s was stopped: %s", machine, stopped.reason)
            self._report(stopped)

    def _read_machines(self) -> None:
        rollouts = self._engine.rollouts(recent=True)
        self._watched = [name for name, each in rollouts.items() if each.under_way and each.guard is not None]
        roots = self._engine.wakeups.recent_roots()
        self._unsettled |= {roots[root][0] for root in self._changes.find(roots)}
        self._unsettled = set(self._engine.unsettled_machines(self._unsettled))
        for machine in sorted(self._unsettled):
            try:
                if count := self._engine.align_versions(machine):
                    log.info("%d partitions of %s follow its versions now", count, machine)
            except (errors.EngineFault, errors.LookupFailed, errors.BadInput) as fault:
                log.error("the versions of %s cannot be settled: %s", machine, fault)

    def pause(self) -> float:
        return self._pause


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

    def run_once(self) -> bool:
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


class IndexBuilder:
    """Fills a machine's indexes, in small calls. Of several concurrent workers the first one fills, and the others
    leave it alone."""

    def __init__(self, engine: Engine, *, pause: float = 10.0) -> None:
        self._engine = engine
        self._pause = pause
        self._complete: tuple[str, float] | None = None  # catalog's revision when all indexes were complete; since when

    def run_once(self) -> bool:
        """Walk all machines, one after the other. Tell whether any index was filled."""
        revision, now = self._engine.catalog_revision(), time.monotonic()
        if self._complete is not None and self._complete[0] == revision and now - self._complete[1] < RECHECK:
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


class GrowthRescue:
    """Finishes what a killed run of ``machine repartition`` has left between two partitions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run_once(self) -> bool:
        """Look once; there is never more to do at once: False."""
        if count := rescue_all(self._engine.client, self._engine.keys):
            log.warning("%d instances were between two partitions; run `machine repartition` again to go on", count)
        return False

    def pause(self) -> float:
        return 10.0


def make_engine_duties(engine: Engine, options: Options) -> dict[str, Duty]:
    """Make the duties by their names."""
    return {
        "growth": GrowthRescue(engine),
        "indexer": IndexBuilder(engine),
        "mender": JobCheck(engine, pause=options.mend),
        "rollouts": RolloutGuard(engine),
    }
