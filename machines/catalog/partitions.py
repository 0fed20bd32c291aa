"""Compares the number of partitions that a definition names with the number that its machine has, and counts those that
an answer is without, because their shard of a cluster does not answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from machines.connections import get_engine
from machines.engine.definitions import CompiledDefinition, Finding
from machines.engine.errors import UnknownMachine
from machines.engine.keys import get_machine


def list_changes(compiled: CompiledDefinition) -> list[Finding]:
    """Warn of each machine of a definition that is published already, with another number of partitions. Raises
    EngineUnavailable."""
    found: list[Finding] = []
    for each in (*compiled.along.values(), compiled):
        if each.partitions is None:
            continue
        try:
            found += each.compare_partitions(get_engine().count_partitions(str(each.source["id"])))
        except UnknownMachine:
            continue
    return found


@dataclass(frozen=True, slots=True)
class MissingPartitions:
    """``count`` partitions do not answer, of the ``of`` that their machines have; ``of`` is 0 where other keys are
    missing. ``nodes``: those of the cluster that hold them."""

    count: int
    of: int = 0
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.count} of {self.of} partitions"


def count_missing(roots: Iterable[str], *, of: bool = True) -> MissingPartitions | None:
    """Count partitions by their roots, or with ``of=False`` other keys; None where none is missing."""
    found = sorted(set(roots))
    if not found:
        return None
    engine = get_engine()
    total = sum(engine.count_partitions(name) for name in {get_machine(root) for root in found}) if of else 0
    return MissingPartitions(len(found), total, tuple(engine.name_nodes(found)))
