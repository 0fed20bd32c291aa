"""Reads and formats durations: ``500ms``, ``30s``, ``5m``, ``2h``, ``1d``, ``30 days``."""

import re
from typing import TypeVar

from machines.engine import expressions, limits
from machines.engine.rates import UNITS, split_unit

from .model import Value
from .place import Place
from .values import read_expression, report_problems

Default = TypeVar("Default", int, None)
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(ms|s(?:econds?)?|m(?:inutes?)?|h(?:ours?)?|d(?:ays?)?)")
_BARE = re.compile(r"\d{1,15}")
HINT = 'write a number and a unit, such as "500ms", "30s", "5m", "2h" or "1d"'


def parse_duration(text: str) -> int | None:
    """Return a duration in ms; None when the text is no duration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    unit = match[2] if match[2] in UNITS else match[2][0]
    return round(float(match[1]) * UNITS[unit])


def format_duration(ms: int) -> str:
    """Format ms as definitions write a duration: ``15m``."""
    number, unit = split_unit(ms)
    return f"{number}{unit}"


def read_duration(place: Place, default: Default, least: int, most: int) -> int | Default:
    """Read a duration; return the default where there is none or where it is invalid (which is reported)."""
    if place.broken:
        return default
    length = parse_duration(place.value) if isinstance(place.value, str) else None
    if length is None:
        place.error("SB113", "not a duration", HINT)
        return default
    if not least <= length <= most:
        place.error("SB114", f"{length} ms is not between {least} and {most} ms")
        return default
    return length


def read_delay(place: Place) -> Value | None:
    """Read the delay of a send: ms, a duration, or ``{"expr": "..."}``."""
    if place.broken:
        return None
    if isinstance(place.value, dict):
        return read_expression(place)
    if isinstance(place.value, str):
        length = _parse_fixed(place.value)
        if length is None:
            place.error("SB113", "not a duration", f'{HINT}; an expression stands in {{"expr": "..."}}')
            return None
        return _delay(length, _shorten(place.value, length), place)
    number = place.whole(0, limits.MAX_DELAY)
    return None if number is None else _delay(number, f"{number} ms", place)


def read_after(text: str, place: Place) -> Value | None:
    """Read a key of ``after``: ms, a duration, or an expression that gives ms."""
    length = _parse_fixed(text)
    if length is not None:
        return _delay(length, _shorten(text, length), place)
    expression = expressions.read(text)
    if any(problem.kind == "syntax" for problem in expression.problems):
        place.error("SB113", "neither a duration nor an expression", HINT)
        return None
    report_problems(expression, place.path, place.report)
    return Value(expression.tree, expression.text, ((place.path, expression),))


def _parse_fixed(text: str) -> int | None:
    return int(text) if _BARE.fullmatch(text.strip()) else parse_duration(text)


def _shorten(text: str, length: int) -> str:
    match = _DURATION.fullmatch(text.strip())
    return f"{match[1]} {match[2]}" if match else f"{length} ms"


def _delay(length: int, text: str, place: Place) -> Value | None:
    if length > limits.MAX_DELAY:
        place.error("SB114", f"{length} ms is not between 0 and {limits.MAX_DELAY} ms")
        return None
    return Value(["num", length], text)
