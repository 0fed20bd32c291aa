"""Values of columns as data of an instance."""

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID


def make_plain(value: Any, *, most: int | None = None) -> Any:
    """Return a value as JSON has it; of a member of an enumeration its value. A text has ``most`` characters."""
    value = getattr(value, "value", value)
    match value:
        case None | bool() | dict() | list():
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
    return str(value)[:most]


def list_changes(wanted: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has to be written into data that an instance has; None unsets."""
    return {name: value for name, value in wanted.items() if not _is_same(value, data.get(name))}


def _is_same(one: Any, other: Any) -> bool:
    """Compare values; fractions lose their last digits in Redis."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)
