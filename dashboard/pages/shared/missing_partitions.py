"""Counts the partitions that a page is without, because their shard of a cluster does not answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from machines.connections import get_engine
from machines.engine.keys import get_machine


@dataclass(frozen=True, slots=True)
class MissingPartitions:
    """``count`` partitions do not answer, of the ``of`` that their machines have; ``of`` is 0 where other keys are
    missing."""

    count: int
    of: int = 0

    def __str__(self) -> str:
        return f"{self.count} of {self.of} partitions"


def count_missing(roots: Iterable[str]) -> MissingPartitions | None:
    """Count partitions by their roots; None where none is missing."""
    found = set(roots)
    if not found:
        return None
    engine = get_engine()
    return MissingPartitions(len(found), sum(engine.count_partitions(name) for name in {get_machine(r) for r in found}))
