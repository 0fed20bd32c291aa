"""The columns of a list of instances: which there are, which are chosen, and what a row says in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from machines.engine import Instance
from machines.engine.definitions import Outline
from machines.engine.definitions.reading.indexes import FACTS

MAX_CHOSEN = 12
MAX_SHOWN = 80  # characters of a value
DATA = "data."


@dataclass(frozen=True, slots=True)
class Column:
    """``kind``: how ``instance_rows`` draws it. ``wide``: left out on a phone. ``name`` stands in the address."""

    name: str
    label: str
    kind: str
    wide: bool = True
    numeric: bool = True


TIME = Column("time", "time in state", "time", wide=False)
REVISION = Column("revision", "revision", "revision")
AGE = Column("age", "created", "age")
FIXED = (
    TIME,
    Column("entered", "entered at", "entered"),
    REVISION,
    Column("version", "version", "version"),
    AGE,
    Column("created", "created at", "created"),
    Column("actor", "last actor", "actor", numeric=False),
    Column("suspended", "suspended", "suspended", numeric=False),
)
USUAL = (TIME, REVISION, AGE)


def list_columns(outline: Outline) -> list[Column]:
    """List the columns of a machine: the facts of an instance, and its indexed data fields."""
    fields = [name for name in outline.index if name not in FACTS]
    return [*FIXED, *(Column(DATA + name, name, "data", numeric=False) for name in fields)]


def choose_columns(given: QueryDict, outline: Outline) -> tuple[Column, ...]:
    """Return the columns of ``?cols=time,version`` or ``?col=time&col=version``, in the order of ``list_columns``; the
    usual ones for none. A name that the machine does not have is passed over: its definition may have changed."""
    names = {*given.get("cols", "").split(","), *given.getlist("col")[:MAX_CHOSEN]}
    chosen = [column for column in list_columns(outline) if column.name in names]
    return tuple(chosen[:MAX_CHOSEN]) or USUAL


def write_columns(columns: Sequence[Column]) -> str | None:
    """Return the term of an address; None for the usual columns."""
    return None if tuple(columns) == USUAL else ",".join(column.name for column in columns)


def read_text(instance: Instance, column: Column) -> str:
    """Return what a row says in a column of data."""
    value = instance.data.get(column.name.removeprefix(DATA))
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
