"""The archive of this installation, what every archive can do, and archived instances as the engine would have answered
while Redis held them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from django.core.exceptions import ImproperlyConfigured

from machines.conf import conf, extras
from machines.conf.retention_policy import ARCHIVE_FOLDER
from machines.connections import get_engine
from machines.engine import EngineFault, Instance, Step, UnknownInstance

from .sql import ArchivedRecord, DamagedBody, Page, SqlArchive


class Archive(Protocol):
    """``batch``: how many instances are best written at once; ``enabled``: False where nothing is archived."""

    batch: int
    enabled: bool

    def write(self, records: Sequence[ArchivedRecord]) -> int:
        """Write all of them or none; return how many are new. One that was written before is not written again."""

    def find(self, machine: str, instance: str) -> ArchivedRecord | None:
        """Return the newest record of an instance."""

    def find_all(self, machine: str, instance: str) -> list[ArchivedRecord]:
        """Return every record of an instance: one for each time it ended."""

    def find_machines(self, instance: str, machines: Sequence[str]) -> list[str]:
        """List those of these machines that have a record of this instance, by name."""

    def search(
        self, machine: str, *, prefix: str = "", state: str = "", since: int | None = None, until: int | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> Page:  # fmt: skip
        """List instances that finished from ``since`` on and before ``until`` (ms), the newest first."""

    def walk(self, machine: str) -> Iterator[ArchivedRecord]:
        """Read every record of a machine."""

    def erase(self, machine: str, instance: str) -> int:
        """Remove the records of an instance; return how many."""


class NoArchive:
    """Holds nothing: instances go without a copy."""

    batch = 500
    enabled = False

    def write(self, records: Sequence[ArchivedRecord]) -> int:
        return 0

    def find(self, machine: str, instance: str) -> ArchivedRecord | None:
        return None

    def find_all(self, machine: str, instance: str) -> list[ArchivedRecord]:
        return []

    def find_machines(self, instance: str, machines: Sequence[str]) -> list[str]:
        return []

    def search(
        self, machine: str, *, prefix: str = "", state: str = "", since: int | None = None, until: int | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> Page:  # fmt: skip
        return Page([], None)

    def walk(self, machine: str) -> Iterator[ArchivedRecord]:
        return iter(())

    def erase(self, machine: str, instance: str) -> int:
        return 0


def get_archive() -> Archive:
    """Return the archive that ``SIGNALBOX_ARCHIVE`` names. Raises ImproperlyConfigured where pyarrow is missing."""
    return _make(conf.ARCHIVE)


@lru_cache(maxsize=8)
def _make(name: str) -> Archive:
    if not name.startswith(ARCHIVE_FOLDER):
        return NoArchive() if name == "none" else SqlArchive()
    try:
        from .parquet import ParquetArchive
    except ImportError as error:
        raise ImproperlyConfigured(
            f"{extras.explain(f'SIGNALBOX_ARCHIVE={name}', 'parquet', ['pyarrow'])} ({error})"
        ) from error
    return ParquetArchive(Path(name.removeprefix(ARCHIVE_FOLDER)))


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
