"""The archive of this installation, and archived instances as the engine would have answered while Redis held
them."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from django.core.exceptions import ImproperlyConfigured

from machines.conf import conf, extras
from machines.conf.retention_policy import ARCHIVE_FOLDER
from machines.connections import get_engine
from machines.engine import EngineFault, Instance, Step, UnknownInstance

from ..models import ArchivedInstance, DamagedBody
from .sql import NoArchive, SqlArchive

if TYPE_CHECKING:
    from .parquet import ParquetArchive

Archive: TypeAlias = "SqlArchive | ParquetArchive"


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


def decode(record: ArchivedInstance) -> tuple[Instance, list[Step]]:
    """Return the instance of a record and its steps, newest first."""
    try:
        instance, steps = get_engine().retirement().decode(record.restore())
    except DamagedBody as damage:
        raise EngineFault(str(damage)) from damage
    return replace(instance, archived_at=record.archived, done=True), steps
