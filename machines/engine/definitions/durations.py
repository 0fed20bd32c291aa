"""Durations as people write them: ``500ms``, ``30s``, ``5m``, ``2h``, ``1d``."""

from __future__ import annotations

import re

from .place import Place

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m|h|d)")
HINT = 'write a number and a unit, such as "500ms", "30s", "5m", "2h" or "1d"'


def milliseconds(text: str) -> int | None:
    """None when the text is no duration."""
    match = _DURATION.fullmatch(text.strip())
    return round(float(match[1]) * _UNITS[match[2]]) if match else None


def read_duration(place: Place | None, default: int, least: int, most: int) -> int:
    """The default stands in where there is none, or where it cannot be used (which is reported)."""
    if place is None or place.broken:
        return default
    length = milliseconds(place.value) if isinstance(place.value, str) else None
    if length is None:
        place.error("SB113", "not a duration", HINT)
        return default
    if not least <= length <= most:
        place.error("SB114", f"{length} ms is not between {least} and {most} ms")
        return default
    return length
