"""Opens archived instances: as the engine would have answered while Redis held them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from machines.connections import get_engine
from machines.engine import EngineFault, Instance, Step, UnknownInstance

from .record import ArchivedRecord, DamagedBody
from .store import get_archive


def open_archived(machine: str, id: str) -> tuple[Instance, list[Step]]:
    """Return an archived instance and its steps, newest first. Raises UnknownInstance where the archive has none,
    UnknownMachine, EngineFault for a record that is damaged, and ``django.db.Error``."""
    record = get_archive().find(machine, id)
    if record is None:
        raise UnknownInstance(machine, id)
    return decode(record)


def decode(record: ArchivedRecord) -> tuple[Instance, list[Step]]:
    """Return the instance of a record and its steps, newest first."""
    try:
        instance, steps = get_engine().retirement().decode(record.restore())
    except DamagedBody as damage:
        raise EngineFault(str(damage)) from damage
    return replace(instance, archived_at=record.archived, done=True), steps


def select_steps(steps: Iterable[Step], limit: int, before: int | None) -> list[Step]:
    """Return the latest steps, newest first; ``before`` is a revision, for the next page."""
    return [step for step in steps if before is None or step.revision < before][:limit]
