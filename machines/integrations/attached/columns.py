"""Columns of a row that its instance carries as data: people see them, and find instances by them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import models

from machines.engine import limits

from .errors import NotAttachable
from .libraries import plain

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


@dataclass(frozen=True)
class Row:
    """``state``: what the column of the state holds; ``data``: name of a column -> its value as data, none for NULL."""

    state: Any
    data: Mapping[str, Any]

    def list_changes(self, data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return what has to be written into data that an instance has; None unsets."""
        wanted = {name: self.data.get(name) for name in names}
        return {name: value for name, value in wanted.items() if not _is_same(value, data.get(name))}


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
    data = {name: _make_plain(value) for name, value in zip(names, values, strict=True)}
    return Row(state, {name: value for name, value in data.items() if value is not None})


def _make_plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    value = plain(value)
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case Decimal() | float():
            return float(value) if math.isfinite(value) else None
        case datetime.datetime():
            at = value.astimezone(datetime.UTC) if value.tzinfo else value
            return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case datetime.timedelta():
            return value.total_seconds()
        case datetime.date() | datetime.time():
            return value.isoformat()
        case UUID():
            return str(value)
    return str(value)[:MAX_TEXT]


def _is_same(one: Any, other: Any) -> bool:
    """Compare values; fractions lose their last digits in Redis."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)
