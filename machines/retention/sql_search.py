"""Searches every text column of the product's tables, and masks what is found there.

Rows stay, also those of the audit: who did what is kept, what it was done with is masked. Not looked at are accounts,
definitions and names of people; what stands there is reported by nobody and erased by the administrator of the
accounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models

from machines.catalog.models.document import DocumentField
from machines.catalog.models.machine import Machine
from machines.catalog.models.version import MachineVersion
from machines.instances.models import ArchivedInstance

from .search_values import SearchValues

APPS = ("machines", "dashboard", "admin", "sessions")
SKIPPED = (ArchivedInstance, Machine, MachineVersion)
PEOPLE = ("actor", "actor_id", "asker", "asker_id", "decider", "maker")
"""Columns that say who did something."""
ESCAPED = "\\u2022" * 3


@dataclass(frozen=True, slots=True)
class Cell:
    """A text of one row."""

    table: str
    column: str
    key_column: str
    key: Any
    text: str
    is_document: bool

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of row {self.key}"


def find(values: SearchValues) -> Iterator[Cell]:
    """Find the texts that hold one of the values."""
    for model in apps.get_models():
        if model._meta.app_label not in APPS or model in SKIPPED or model._meta.proxy or not model._meta.managed:
            continue
        for field in model._meta.concrete_fields:
            if isinstance(field, models.CharField | models.TextField) and field.name not in PEOPLE:
                yield from _find_in(model, field, values)


def mask(cell: Cell, values: SearchValues) -> None:
    """Replace the values in a text. It goes around the models, some of which refuse to be changed."""
    text = values.mask(cell.text, ESCAPED if cell.is_document else "•••")
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_quote(cell.table)} SET {_quote(cell.column)} = %s WHERE {_quote(cell.key_column)} = %s",  # noqa: S608
            [text, cell.key],
        )


def _find_in(model: type[models.Model], field: models.Field, values: SearchValues) -> Iterator[Cell]:
    table, column, key = model._meta.db_table, str(field.column), str(model._meta.pk.column)
    terms = " OR ".join([f"{_quote(column)} LIKE %s ESCAPE '!'"] * len(values.texts))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_quote(key)}, {_quote(column)} FROM {_quote(table)} WHERE {terms}",  # noqa: S608
            [f"%{_escape(text)}%" for text in values.texts],
        )
        rows = cursor.fetchall()
    for row, text in rows:
        if values.are_in(text):  # LIKE of SQLite takes upper and lower case for the same
            yield Cell(table, column, key, row, text, isinstance(field, DocumentField))


def _escape(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _quote(name: str) -> str:
    return str(connection.ops.quote_name(name))
