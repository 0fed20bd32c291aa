"""Lists the attached fields of a project, and names the states of each: what its column holds, and what the machine
calls it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db import models
from django.utils import translation

from machines.engine import limits
from machines.people import mirrors

from .columns import Row, read_row
from .libraries import ANY, ANY_OTHER, DeclaredTransition, Library, MadeTransition, group

EMPTY = "(empty)"
_UNFIT = re.compile(r"[.#\x00-\x1f]+")
_attached: dict[str, Attachment] = {}
"""By the machine's name."""


@dataclass
class Change:
    """What one transaction did with one row."""

    transitions: list[MadeTransition] = field(default_factory=list)
    created: bool = False
    deleted: bool = False
    actor: str = ""


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
    def transitions(self) -> dict[str, dict[Any, DeclaredTransition]]:
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


@dataclass
class StateNames:
    """``names``: value of the column -> name of the state, in the order of the declarations; ``labels``: name -> words
    of the field's choices."""

    names: dict[Any, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, value: Any, label: str = "") -> None:
        value = getattr(value, "value", value)
        if value is None or value in self.names:
            return
        wanted = label if isinstance(value, int) and label else str(value)
        name = _fit(wanted) or _fit(str(value)) or EMPTY
        if name in self.names.values():
            name = f"{name[: limits.MAX_STATE_NAME - 12]} {len(self.names)}"
        self.names[value] = name
        if label and label != name:
            self.labels[name] = label

    def find(self, value: Any) -> str | None:
        return self.names.get(getattr(value, "value", value))


def _fit(text: str) -> str:
    return _UNFIT.sub("_", text).strip()[: limits.MAX_STATE_NAME].strip()


def read_states(library: Library) -> StateNames:
    """Collect the values that the field's default and choices, and the library's states and transitions name."""
    found = StateNames()
    with translation.override(None):  # the same names in each process
        labels = {value: str(label) for value, label in _flatten(library.field.choices or ())}
        for value, label in library.list_states():
            labels.setdefault(getattr(value, "value", value), label)
        for value in (library.get_initial(), *labels):
            _add(found, value, labels)
        for one in library.list_transitions():
            for value in (None if one.source in (ANY, ANY_OTHER) else one.source, *one.targets):
                _add(found, value, labels)
    return found


def _add(found: StateNames, value: Any, labels: dict[Any, str]) -> None:
    if isinstance(value, list | tuple):
        for one in value:
            _add(found, one, labels)
    else:
        found.add(value, labels.get(getattr(value, "value", value), ""))


def _flatten(choices: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from _flatten(label)
        elif value not in (None, ""):
            yield value, label
