"""Lists the attached fields of a project."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db import models

from machines.catalog import mirrors

from .columns import Row, read_row
from .libraries import Declared, Library, group
from .states import StateNames, read_states

_attached: dict[str, Attachment] = {}
"""By the machine's name."""


@dataclass(frozen=True)
class Attachment:
    """One field of a model, and the machine whose instances follow it. ``sla``: state -> its service level;
    ``columns``: names of those that instances carry as data."""

    model: type[models.Model]
    field_name: str
    machine: str
    library: Library
    sla: Mapping[str, str] = field(default_factory=dict, compare=False)
    columns: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Such as ``shop.Order.state``."""
        return f"{self.model._meta.label}.{self.field_name}"

    @property
    def field(self) -> Any:
        return self.model._meta.get_field(self.field_name)

    @cached_property
    def states(self) -> StateNames:
        return read_states(self.library)

    @cached_property
    def transitions(self) -> dict[str, dict[Any, Declared]]:
        """Event -> source -> its transition."""
        return group(self.library.list_transitions())

    def is_written(self, names: Iterable[str], written: Collection[str] | None) -> bool:
        """Tell whether a save wrote one of the fields. ``written``: its ``update_fields``, None where it wrote all."""
        fields = [self.model._meta.get_field(name) for name in names]
        return any(written is None or one.name in written or one.attname in written for one in fields)

    def value_of(self, row: models.Model) -> Any:
        """Return what the column of a row in memory holds."""
        return self.field.value_from_object(row)

    def read(self, rows: Any) -> list[tuple[Any, Row]]:
        """Read a queryset of the model: primary keys, and what the columns hold."""
        found = rows.values_list("pk", self.field.attname, *self.columns)
        return [(pk, read_row(state, self.columns, values)) for pk, state, *values in found]

    def covers(self, model: type[models.Model]) -> bool:
        """Tell whether rows of a model are rows of this one: it, a proxy, or a child with a table of its own."""
        return issubclass(model, self.model)

    def state_of(self, row: models.Model) -> str | None:
        """Return the state of a row in memory; None for a value that no transition declares."""
        return self.states.find(self.value_of(row))


def list_attached() -> list[Attachment]:
    return list(_attached.values())


def list_of(model: type[models.Model]) -> list[Attachment]:
    """List those that a row of a model belongs to."""
    return [one for one in _attached.values() if one.covers(model)]


def find(machine: str) -> Attachment | None:
    return _attached.get(machine)


def put(attachment: Attachment) -> None:
    _attached[attachment.machine] = attachment
    mirrors.note_model(attachment.machine)


def remove(attachment: Attachment) -> None:
    del _attached[attachment.machine]
    mirrors.forget_model(attachment.machine)
