"""Reads and writes the two columns of a machine field, each write guarded by the revision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models import Model, QuerySet

from machines.engine import Instance, limits

if TYPE_CHECKING:
    from .field import MachineField

CUT = "…"
LARGEST = 2**63 - 1  # of a database's whole numbers


class MirroredText(str):
    """A text that the product itself writes into the column; any other is refused."""

    __slots__ = ()


class MirroredRevision(int):
    """The same for the revision."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """What a row says. ``revision`` 0: it never had an instance."""

    state: str
    revision: int


def rows(field: MachineField, using: str) -> QuerySet[Any]:
    """Return all rows, whatever managers the model has."""
    return QuerySet(model=field.model, using=using)


def is_in_transaction(using: str) -> bool:
    """Tell whether a transaction is open. The test kit answers without the one around a test."""
    return connections[using].in_atomic_block


def column_text(field: MachineField, state: str) -> str:
    """Return a state as the column can hold it: one that is longer is cut, and ends with an ellipsis."""
    most = field.max_length
    return state if most is None or len(state) <= most else state[: most - 1] + CUT


def earlier_state(field: MachineField, row: Model) -> str:
    """Return the state that a row had before it had a machine, such as that of another library's field; "" for none."""
    held = row.__dict__
    return "" if held.get(field.revision_name) else str(held.get(field.attname) or "")


def check_id(value: Any) -> str | None:
    """Say why a value of the row's identifying column can be no instance's id; None where it can."""
    return "is missing" if value is None else limits.check_instance_id(str(value))


def parse_id(field: MachineField, id: str) -> Any:
    """Return the value of the row's identifying column, or None where no row can have this id."""
    try:
        value = field.id_field.to_python(id)
    except (ValidationError, ValueError, TypeError):
        return None
    if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:  # no database takes it, not even to compare
        return None
    return value if value is not None and str(value) == id else None


def parse_ids(field: MachineField, ids: Iterable[str]) -> list[Any]:
    """Return the values of the row's identifying column, without ids that no row can have."""
    return [value for id in ids if (value := parse_id(field, id)) is not None]


def read(field: MachineField, ids: Iterable[str], using: str) -> dict[str, Columns]:
    """Read the columns of those rows that exist."""
    found = rows(field, using).filter(**{f"{field.id_field.attname}__in": parse_ids(field, ids)})
    listed = found.values_list(field.id_field.attname, field.attname, field.revision_name)
    return {str(value): Columns(str(state), revision) for value, state, revision in listed}


def advance(field: MachineField, id: str, state: str, revision: int, using: str) -> bool:
    """Write a state unless the row has this revision or a later one; tell whether it was written."""
    value = parse_id(field, id)
    if value is None:
        return False
    connection = connections[using]
    words = (column_text(field, state), revision, field.id_field.get_db_prep_value(value, connection), revision)
    with connection.cursor() as cursor:
        cursor.execute(_advancing(field, using), words)
        return bool(cursor.rowcount > 0)


@lru_cache(maxsize=256)
def _advancing(field: MachineField, using: str) -> str:
    """Return the statement of ``advance``, which follows each step: building it each time would cost more than running
    it."""
    quote, meta = connections[using].ops.quote_name, field.model._meta
    names = (field.name, field.revision_name, field.id_field.name)
    state, revision, id = (quote(meta.get_field(name).column) for name in names)
    table = quote(meta.db_table)
    return f"UPDATE {table} SET {state} = %s, {revision} = %s WHERE {id} = %s AND {revision} < %s"  # noqa: S608  names


def replace(field: MachineField, id: str, state: str, revision: int, using: str, *, seen: Columns) -> bool:
    """Write a state, also an earlier one, in place of what was ``seen``; tell whether that still stood there."""
    same = {field.revision_name: seen.revision, field.attname: MirroredText(seen.state)}
    value = parse_id(field, id)
    if value is None:
        return False
    found = rows(field, using).filter(**{field.id_field.attname: value}, **same)
    text = MirroredText(column_text(field, state))
    return found.update(**{field.attname: text, field.revision_name: MirroredRevision(revision)}) > 0


def advance_many(field: MachineField, made: Iterable[Instance], using: str) -> None:
    """Write the states of many instances; one statement for each state and revision."""
    found: dict[tuple[str, int], list[str]] = {}
    for one in made:
        found.setdefault((one.state, one.revision), []).append(one.id)
    for (state, revision), ids in found.items():
        behind = {f"{field.id_field.attname}__in": parse_ids(field, ids), f"{field.revision_name}__lt": revision}
        text = MirroredText(column_text(field, state))
        rows(field, using).filter(**behind).update(
            **{field.attname: text, field.revision_name: MirroredRevision(revision)}
        )


def remember(field: MachineField, row: Model, state: str, revision: int, *, anyhow: bool = False) -> None:
    """Set the columns of a row in memory, unless it knows a later revision; ``anyhow``, also then."""
    held = row.__dict__
    if anyhow or held.get(field.revision_name, 0) <= revision or field.attname not in held:
        held[field.attname], held[field.revision_name] = column_text(field, state), revision
