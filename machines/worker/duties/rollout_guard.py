"""Stops roll-outs whose new version does worse than its base, brings partitions up that a killed publisher has left
behind, and counts the instances of versions that are older than the counters."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from machines.engine import Engine, Rollout, errors

log = logging.getLogger(__name__)

ACTOR = "worker"
REREAD = 60.0  # seconds after which machines that changed are looked at, whatever the revision of the catalog says
WHOLE = 3600.0  # seconds after which all machines are


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

    def once(self) -> bool:
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
                if count := self._engine.count_versions(machine):
                    log.info("the instances of each version of %s are counted: %d", machine, count)
            except (errors.EngineFault, errors.LookupFailed, errors.BadInput) as fault:
                log.error("the versions of %s cannot be settled: %s", machine, fault)

    def pause(self) -> float:
        return self._pause
