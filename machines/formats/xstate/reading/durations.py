"""Reads delays: milliseconds, ISO 8601 durations, names."""

from __future__ import annotations

import re
from typing import Any

from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote
from machines.formats.xstate.context import Scope
from machines.formats.xstate.dialect import unbrace
from machines.formats.xstate.source import implementations

from .values import read_expression

_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


def read_delay(place: Place, scope: Scope) -> Any:
    """Read a delay as ``send`` takes it: a number of ms, a duration, or an expression that gives ms."""
    if isinstance(place.value, int | float) and not isinstance(place.value, bool):
        return place.value
    text = place.text("a delay", "write milliseconds")
    if text is None:
        return 0
    fixed = fixed_delay(text)
    return fixed if fixed is not None else {"expr": delay_expression(place, text, scope)}


def fixed_delay(text: str) -> int | float | str | None:
    """Return milliseconds, or a duration as people write it; None for any other text."""
    trimmed = text.strip()
    if re.fullmatch(r"\d{1,15}", trimmed):
        return int(trimmed)
    if parse_duration(trimmed) is not None:
        return trimmed
    match = _ISO.fullmatch(trimmed)
    if match is None:
        return None
    total = sum(float(match[unit] or 0) * size for unit, size in _UNITS.items())
    return round(total)


def delay_expression(place: Place, text: str, scope: Scope) -> str:
    code = unbrace(text)
    if code is not None:
        return read_expression(place, code, scope)
    found = implementations.of("delays", text, scope)
    if found is not None and isinstance(found.value, int | float | str):
        fixed = fixed_delay(str(found.value))
        return str(fixed) if fixed is not None else delay_expression(found, found.value, implementations.deeper(scope))
    if text in scope.reading.fields:
        return scope.reading.fields[text]
    scope.reading.report.add(
        "SB140",
        place.path,
        f"the delay {quote(text)} has no length in this text",
        'write milliseconds, or a duration such as "30s"',
    )
    return text
