"""Finds data fields that hold a time, and reads it.

A definition knows integers only; its description says that a field is a time ("unix seconds of ..."). The value has to
look like a time, too, so that a duration in ms is not taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from machines.engine.definitions import FieldOutline

INTEGER = ({"integer"}, {"integer", "null"})
SECONDS = re.compile(r"\bunix seconds\b", re.IGNORECASE)
MILLISECONDS = re.compile(r"\b(ms|milliseconds)\b", re.IGNORECASE)
FROM, UNTIL = 978_307_200_000, 4_102_444_800_000  # ms: the years 2001 to 2099


class TimeFields:
    """Holds the fields of a machine that hold times, each with the ms of its unit."""

    def __init__(self, fields: Iterable[FieldOutline]) -> None:
        self._units = {field.name: unit for field in fields if (unit := _find_unit(field))}

    def moment(self, name: str, value: Any) -> int | None:
        """Return the time of a value in ms, or None if it is none."""
        unit = self._units.get(name)
        if unit is None or not isinstance(value, int) or isinstance(value, bool):
            return None
        return value * unit if FROM <= value * unit < UNTIL else None


def _find_unit(field: FieldOutline) -> int | None:
    if set(field.types) not in INTEGER:
        return None
    if SECONDS.search(field.description):
        return 1000
    return 1 if MILLISECONDS.search(field.description) else None
