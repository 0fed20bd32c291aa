"""Data fields that hold a time: which they are, and the time they say.

A definition knows integers only; that one of them is a time stands in its description ("unix seconds of ..."), and
the value has to look like one too, so that a duration in ms is left alone.
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
    """The fields of one machine that hold times, each with the ms its unit has."""

    def __init__(self, fields: Iterable[FieldOutline]) -> None:
        self._units = {field.name: unit for field in fields if (unit := _unit(field))}

    def moment(self, name: str, value: Any) -> int | None:
        """The time in ms that ``value`` says in the field, or None where it is none."""
        unit = self._units.get(name)
        if unit is None or not isinstance(value, int) or isinstance(value, bool):
            return None
        return value * unit if FROM <= value * unit < UNTIL else None


def _unit(field: FieldOutline) -> int | None:
    if set(field.types) not in INTEGER:
        return None
    if SECONDS.search(field.description):
        return 1000
    return 1 if MILLISECONDS.search(field.description) else None
