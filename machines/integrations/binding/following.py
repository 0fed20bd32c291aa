"""Brings the columns that a field follows to the instance of their row.

An instance is read before its row, and written only if it has not moved since. Each commit that changes a column is
followed by such a reading, so that the last one to write is the one that saw the latest row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from machines.audit import redaction
from machines.catalog.queries import outline_of
from machines.connections import get_engine
from machines.engine import BadPayload, Conflict, Instance

from ..row_values import list_changes, make_plain
from . import state_columns

if TYPE_CHECKING:
    from .field import MachineField

TURNS = 20  # in which an instance that others move is read again
RECENT = 100  # steps of the history in which edits of the row are looked for
ACTOR = "row"


def read(field: MachineField, ids: Iterable[str], using: str) -> dict[str, dict[str, Any]]:
    """Return id -> data field -> the present value of its column, of those rows that exist. Raises ColumnGone."""
    names = [column.attname for column in field.list_followed()]
    if not names:
        return {}
    found = state_columns.rows(field, using).filter(
        **{f"{field.id_field.attname}__in": state_columns.parse_ids(field, ids)}
    )
    return {
        str(id): dict(zip(field.follows, map(make_plain, values), strict=True))
        for id, *values in found.values_list(field.id_field.attname, *names)
    }


def read_set(field: MachineField, ids: Iterable[str], using: str) -> dict[str, dict[str, Any]]:
    """Return the same without columns that are NULL, as new instances get it."""
    found = read(field, ids, using)
    return {id: {name: value for name, value in row.items() if value is not None} for id, row in found.items()}


def list_differences(field: MachineField, there: Instance, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has to be written into an instance: data field -> value of its row. Fields that its version does not
    declare are left out: no guard of that version reads them."""
    changes = list_changes(row, there.data)
    declared = {one.name for one in outline_of(there.machine, there.version).data} if changes else ()
    return {name: value for name, value in changes.items() if name in declared}


def follow(field: MachineField, id: str, using: str, expect: int | None = None) -> tuple[Instance, int | None]:
    """Bring the present values of the row to its instance, by a step of its own where they differ; return the instance,
    and the revision that an event has to expect now. Where the instance is not at the revision ``expect`` nothing is
    written. Raises ColumnGone, Conflict where others move it all the time, BadPayload for a value that does not fit."""
    for turn in range(TURNS):
        there = get_engine().get(field.machine, id)
        changes = list_differences(field, there, read(field, [id], using).get(id, {}))
        if not changes or expect not in (None, there.revision):
            break
        try:
            why = f"{field.label} follows its row"
            with hiding_values(field.machine):
                there = get_engine().edit(field.machine, id, changes, actor=ACTOR, reason=why, expect=there.revision)
        except Conflict:
            if turn == TURNS - 1:
                raise
            continue
        state_columns.advance(field, id, there.state, there.revision, using)
        return there, None if expect is None else there.revision
    return there, expect


def pass_edits(field: MachineField, id: str, expect: int) -> int:
    """Return the present revision where nothing but rows that were followed moved the instance since ``expect``; else
    ``expect``."""
    later = [one for one in get_engine().history(field.machine, id, limit=RECENT) if one.revision > expect]
    newest = max((one.revision for one in later), default=expect)
    is_whole = len(later) == newest - expect  # else older steps are no longer kept
    return newest if is_whole and all((one.event, one.actor) == ("(edit)", ACTOR) for one in later) else expect


@contextmanager
def hiding_values(machine: str) -> Iterator[None]:
    """Redact what leaves the block about a value that does not fit: it is the row's, which the caller may not see."""
    try:
        yield
    except BadPayload:
        with redaction.strict_redactor(machine).raising():
            raise
