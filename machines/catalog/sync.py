"""Compares definitions in files with the published versions, and publishes what changed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, transaction

from machines.connections import get_engine
from machines.engine import Engine
from machines.engine.definitions import CompiledDefinition

from . import publishing, submissions
from .definition_files import AppFile
from .models import Machine, MachineVersion

NOTE = "machine sync: "
"""With which the notes of a version begin that was published from a file; its path follows."""
MOST_VERSIONS = 100  # the newest ones, among which the version that a file once was is looked for

NEW, CHANGED, UNCHANGED, NEWER, LOST = "new", "changed", "unchanged", "newer version", "not in Redis"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A file and the current version of its machine.

    ``status``: NEW; CHANGED; UNCHANGED; NEWER: the file is an older version, and the current one was not published from
    a file; LOST: only the database has the machine. ``current``: the number of the current version, None for none;
    ``note``: what people should know.
    """

    file: AppFile
    compiled: CompiledDefinition
    status: str
    current: int | None = None
    note: str = ""

    @property
    def name(self) -> str:
        return self.file.file.name


def compare(files: Iterable[AppFile]) -> list[Comparison]:
    """Compare files without errors with what is published; writes nothing. Raises EngineUnavailable."""
    engine = get_engine()
    held, recorded = engine.machines(), _read_recorded()
    return [_compare(engine, one, held, recorded) for one in files if one.file.submission.compiled is not None]


def _compare(engine: Engine, file: AppFile, held: dict[str, int], recorded: dict[str, int]) -> Comparison:
    compiled, name = file.file.submission.compiled, file.file.name
    assert compiled is not None
    if name not in held:
        if name not in recorded:
            return Comparison(file, compiled, NEW)
        return Comparison(file, compiled, LOST, recorded[name], "only the database has it: see `machine restore`")
    current = held[name]
    if publishing.is_same(engine.definition(name, current), compiled):
        return Comparison(file, compiled, UNCHANGED, current)
    published = find_publication(name, current)
    if published.is_from_file:
        return Comparison(file, compiled, CHANGED, current)
    earlier = _find_version(engine, name, compiled, current)
    if earlier is None:
        return Comparison(file, compiled, CHANGED, current, f"replaces v{current}, {published}")
    note = f"v{current}, {published}, is newer than the file, which is v{earlier}"
    return Comparison(file, compiled, NEWER, current, note)


@dataclass(frozen=True, slots=True)
class Publication:
    """Who published a version, as far as the database knows."""

    is_from_file: bool = False
    by: str = ""
    at: datetime | None = None

    def __str__(self) -> str:
        when = f" on {self.at:%Y-%m-%d %H:%M} UTC" if self.at is not None else ""
        return f"published by {self.by or 'a command or a program'}{when}"


def find_publication(name: str, number: int) -> Publication:
    """Read who published a version. Without a database, or a row, nothing is known."""
    try:
        with transaction.atomic():
            rows = MachineVersion.objects.filter(machine__name=name, number=number).select_related("published_by")
            row = rows.defer("definition", "drawing").first()
    except DatabaseError:
        row = None
    if row is None:
        return Publication()
    by = row.published_by.get_username() if row.published_by is not None else ""
    return Publication(row.notes.startswith(NOTE), by, row.published_at)


def adopt_unrecorded(comparisons: Iterable[Comparison]) -> None:
    """Record in SQL the machines that stay as they are and that a program published. Raises Diverged."""
    recorded = _read_recorded()
    for one in comparisons:
        if one.status == UNCHANGED and recorded.get(one.name) != one.current:
            publishing.adopt(one.name)


def read_text(comparison: Comparison) -> tuple[str, str]:
    """Return the text of a file and its format; its definition as JSON where the text needs other files to be read."""
    file = comparison.file.file
    format = file.submission.format
    if submissions.read(file.text, format=format).definition == comparison.compiled.source:
        return file.text, format
    return json.dumps(comparison.compiled.source, indent=2, ensure_ascii=False), "json"


def _read_recorded() -> dict[str, int]:
    """Return machine -> current version by SQL; empty without a database."""
    try:
        with transaction.atomic():
            return dict(Machine.objects.values_list("name", "current"))
    except DatabaseError:
        return {}


def _find_version(engine: Engine, name: str, compiled: CompiledDefinition, current: int) -> int | None:
    """Find the newest earlier version that is this definition."""
    numbers = [number for number in engine.versions(name) if number != current]
    for number in sorted(numbers, reverse=True)[:MOST_VERSIONS]:
        if publishing.is_same(engine.definition(name, number), compiled):
            return number
    return None
