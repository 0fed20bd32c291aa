"""Rebuilds frozen records from the JSON that ``dataclasses.asdict`` wrote."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def rebuild(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Rebuild a record. ``kind``: a dataclass of texts, numbers, JSON (``Any``), other such classes, tuples, and
    objects by name."""
    hints = _hints(cast(Any, kind))
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    found = get_type_hints(kind)
    return {field.name: found[field.name] for field in fields(kind)}


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(next(one for one in inner if one is not type(None)), value)
    if origin is tuple:
        return tuple(_value(inner[0], one) for one in value)
    if origin is dict:
        return {name: _value(inner[1], one) for name, one in value.items()}
    return rebuild(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
