"""Compares the number of partitions that a definition names with the number that its machine has."""

from __future__ import annotations

from machines.connections import get_engine
from machines.engine.definitions import CompiledDefinition, Finding
from machines.engine.errors import UnknownMachine


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
