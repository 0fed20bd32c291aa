"""The archive in Parquet files: ``<folder>/<machine>/<year>-<month>/<time>-<random>.parquet``, by the month of the end.

A file is written whole under another name, synced, and renamed: it is there or not. Records of a crash between archive
and removal are in two files; readers give each once. Files are sorted by id, so that a look for one id reads little of
each; but it opens each, and a folder of thousands of files is slower to look into than a database.
"""

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as files

from machines.engine.transfer.drafts import lock_folder, open_draft

from ..models import ArchivedInstance
from .sql import Page, add_to_totals, find_month, read_cursor, take_off_totals

ROWS = 1000  # of a row group, whose least and highest id its footer has
COLUMNS = [field.name for field in ArchivedInstance._meta.concrete_fields]
LISTED = [name for name in COLUMNS if name != "body"]
STORED = [field.column for field in ArchivedInstance._meta.concrete_fields]  # as the files call them
SCHEMA = arrow.schema(
    [
        ("machine", arrow.string()),
        ("instance", arrow.string()),
        ("finished", arrow.int64()),
        ("version", arrow.int32()),
        ("revision", arrow.int64()),
        ("state", arrow.string()),
        ("created", arrow.int64()),
        ("actor", arrow.string()),
        ("archived", arrow.int64()),
        ("indexed", arrow.string()),
        ("body", arrow.binary()),
    ]
)


class ParquetArchive:
    """Records as rows of Parquet files. Any tool that reads Parquet can read them; ``body`` is zlib of JSON."""

    batch = 5000
    enabled = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, records: Sequence[ArchivedInstance]) -> int:
        """Write a file for each machine and month."""
        parts: dict[Path, list[ArchivedInstance]] = {}
        for record in records:
            year, month = find_month(record.finished)
            parts.setdefault(self._folder / record.machine / f"{year:04}-{month:02}", []).append(record)
        for folder, some in parts.items():
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / f"{some[0].archived}-{secrets.token_hex(6)}.parquet", some)
            add_to_totals(some)
        return len(records)

    def find(self, machine: str, instance: str) -> ArchivedInstance | None:
        for month in self._months(machine):
            if found := list(_read(month, COLUMNS, ("instance", "==", instance))):
                return max(found, key=lambda record: record.finished)
        return None

    def find_all(self, machine: str, instance: str) -> list[ArchivedInstance]:
        return [
            record for month in self._months(machine) for record in _read(month, COLUMNS, ("instance", "==", instance))
        ]

    def find_machines(self, instance: str, machines: Sequence[str]) -> list[str]:
        return [name for name in sorted(machines) if self._holds(name, instance)]

    def _holds(self, machine: str, instance: str) -> bool:
        found = (_read(month, LISTED, ("instance", "==", instance)) for month in self._months(machine))
        return any(any(True for _ in records) for records in found)

    def search(
        self, machine: str, *, prefix: str = "", state: str = "", since: int | None = None, until: int | None = None,
        limit: int = 50, cursor: str | None = None,
    ) -> Page:  # fmt: skip
        """List records without their bodies."""
        after = read_cursor(cursor) if cursor else None
        terms: list[tuple[str, str, Any]] = [("finished", ">=", since or 0)]
        terms += [("finished", "<", until)] if until is not None else []
        terms += [("state", "==", state)] if state else []
        found: list[ArchivedInstance] = []
        for month in self._months(machine):
            listed = [
                record
                for record in _read(month, LISTED, *terms)
                if record.instance.startswith(prefix) and (after is None or _place(record) > (-after[0], after[1]))
            ]
            found += sorted(listed, key=_place)
            if len(found) > limit:
                break
        last = found[limit - 1] if len(found) > limit else None
        return Page(found[:limit], f"{last.finished}:{last.instance}" if last else None)

    def walk(self, machine: str) -> Iterator[ArchivedInstance]:
        for month in self._months(machine):
            yield from _read(month, COLUMNS)

    def erase(self, machine: str, instance: str) -> int:
        """Write the files that hold the instance anew, without it. One run at a time: each would bring back what the
        other has erased."""
        folder = self._folder / machine
        if not folder.is_dir():
            return 0
        with lock_folder(folder):
            return sum(_erase(file, machine, instance) for file in sorted(folder.glob("*/*.parquet")))

    def _months(self, machine: str) -> list[Path]:
        """List the folders of a machine, the newest month first."""
        folder = self._folder / machine
        return sorted((path for path in folder.iterdir() if path.is_dir()), reverse=True) if folder.is_dir() else []


def _place(record: ArchivedInstance) -> tuple[int, str]:
    """Return what records are listed by: the newest first, then by id."""
    return -record.finished, record.instance


def _write(file: Path, records: Iterable[ArchivedInstance]) -> None:
    ordered = sorted(records, key=lambda record: record.instance)
    rows = [{name: getattr(record, name) for name in COLUMNS} for record in ordered]
    table = arrow.Table.from_pylist(rows, schema=SCHEMA).rename_columns(STORED)
    with open_draft(file) as draft, draft.open("wb") as output:
        files.write_table(table, output, compression="zstd", row_group_size=ROWS)
        output.flush()
        os.fsync(output.fileno())
    with lock_folder(file.parent) as descriptor:
        os.fsync(descriptor)


def _erase(file: Path, machine: str, instance: str) -> int:
    """Write a file anew without the instance; return how many of its records are gone."""
    doomed = list(_read_file(file, ["instance", "body"], [("instance", "==", instance)]))
    if doomed:
        if rest := [row for row in _read_file(file, COLUMNS, None) if row["instance"] != instance]:
            _write(file, [ArchivedInstance(**row) for row in rest])
        else:
            file.unlink()
        take_off_totals(machine, len(doomed), sum(len(row["body"]) for row in doomed))
    return len(doomed)


def _read(month: Path, columns: list[str], *terms: tuple[str, str, Any]) -> Iterator[ArchivedInstance]:
    """Read the records of a month for which all terms hold, each once."""
    seen: set[tuple[str, int]] = set()
    for file in sorted(month.glob("*.parquet")):
        for row in _read_file(file, columns, list(terms) or None):
            key = row["instance"], row["finished"]
            if key not in seen:
                seen.add(key)
                yield ArchivedInstance(**row)


def _read_file(file: Path, columns: list[str], terms: list[tuple[str, str, Any]] | None) -> list[dict[str, Any]]:
    with file.open("rb") as source:
        table = files.read_table(source, columns=[STORED[COLUMNS.index(name)] for name in columns], filters=terms)
    found: list[dict[str, Any]] = table.rename_columns(columns).to_pylist()
    return found
