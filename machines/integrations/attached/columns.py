"""Columns of a row that its instance carries as data: people see them, and find instances by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models

from machines.engine import BadInput, limits

from ..row_values import list_changes, make_plain

MAX_TEXT = 500  # characters of a text; what is longer is cut
TYPES: dict[type[models.Field[Any, Any]], str] = {
    models.BooleanField: "boolean",
    models.IntegerField: "integer",
    models.DecimalField: "number",
    models.FloatField: "number",
    models.DurationField: "number",
    models.CharField: "string",
    models.TextField: "string",
    models.UUIDField: "string",
    models.DateField: "string",
    models.TimeField: "string",
    models.GenericIPAddressField: "string",
}
"""Class of a field, or of one of its bases -> type of the data field."""


class NotAttachable(BadInput):
    """A model or a field that cannot be mirrored; the message says what would be."""

    code = "SB493"


@dataclass(frozen=True)
class Row:
    """``state``: what the column of the state holds; ``data``: name of a column -> its value as data, none for NULL."""

    state: Any
    data: Mapping[str, Any]

    def list_changes(self, data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return what has to be written into data that an instance has; None unsets."""
        return list_changes({name: self.data.get(name) for name in names}, data)


def check_columns(model: type[models.Model], names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of columns as they were given. Raises NotAttachable."""
    if isinstance(names, str):
        raise NotAttachable(f"columns takes a list of names, such as columns=[{names!r}]")
    given = tuple(names)
    if len(set(given)) < len(given) or len(given) > limits.MAX_INDEXES:
        raise NotAttachable(f"columns takes {limits.MAX_INDEXES} different names at most; not {', '.join(given)}")
    fields = {one.name: one for one in model._meta.concrete_fields}
    for name in given:
        if name not in fields:
            raise NotAttachable(f"{model._meta.label} has no column {name!r}; it has: {', '.join(fields)}")
        if not fields[name].is_relation and find_type(fields[name]) is None:
            raise NotAttachable(f"{model._meta.label}.{name}: a {type(fields[name]).__name__} cannot be searched by")
        if (why := limits.check_field_name(name)) is not None:
            raise NotAttachable(f"{model._meta.label}.{name}: the name of a data field {why}")
    return given


def find_type(field: Any) -> str | None:
    """Return the type of a field's data; None where its values have no order."""
    return next((TYPES[kind] for kind in type(field).__mro__ if kind in TYPES), None)


def declare_context(model: type[models.Model], names: Iterable[str]) -> dict[str, Any]:
    """Return the ``context`` of a definition: a JSON Schema."""
    properties = {}
    for name in names:
        field: Any = model._meta.get_field(name)
        kind = find_type(field.target_field if field.is_relation else field) or "string"
        properties[name] = {"type": kind, "description": str(field.verbose_name)[:200]}
    return {"type": "object", "properties": properties}


def read_row(state: Any, names: Iterable[str], values: Iterable[Any]) -> Row:
    data = {name: make_plain(value, most=MAX_TEXT) for name, value in zip(names, values, strict=True)}
    return Row(state, {name: value for name, value in data.items() if value is not None})
