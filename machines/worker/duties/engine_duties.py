"""Exclusive duties that need Redis alone: those of a worker without Django. One with Django has more beside them."""

from __future__ import annotations

import logging

from machines.engine import Engine
from machines.engine.transfer import rescue_all

from ..options import Options
from .index_builder import IndexBuilder
from .job_check import JobCheck
from .periodic import Duty
from .rollout_guard import RolloutGuard

log = logging.getLogger(__name__)


class GrowthRescue:
    """Finishes what a killed run of ``machine repartition`` has left between two partitions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def once(self) -> bool:
        """Look once; there is never more to do at once: False."""
        if count := rescue_all(self._engine.client, self._engine.keys):
            log.warning("%d instances were between two partitions; run `machine repartition` again to go on", count)
        return False

    def pause(self) -> float:
        return 10.0


class LayoutMigration:
    """Moves the data layout once, by the migrations of this release."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def once(self) -> bool:
        """Run what is not done; there is never more to do at once: False."""
        self._engine.migrate_layout()
        return False

    def pause(self) -> float:
        return 3600.0


def make_engine_duties(engine: Engine, options: Options) -> dict[str, Duty]:
    """Make the duties by their names."""
    return {
        "growth": GrowthRescue(engine),
        "indexer": IndexBuilder(engine),
        "layout": LayoutMigration(engine),
        "mender": JobCheck(engine, pause=options.mend),
        "rollouts": RolloutGuard(engine),
    }
