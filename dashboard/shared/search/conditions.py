"""Reads the terms of a filter that are more than a text: conditions on data, times of creation, yes and no."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from time import time
from typing import Any

from django.utils import timezone

from machines.catalog.redaction import Concealed
from machines.engine import BadInput
from machines.engine.definitions import Outline, durations

from .query_line import EQUAL, LineTerm, split_line

HINT = "a value, a prefix like ATV-*, or a range like 5..10"
BOUNDS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}
CREATED_HINT = "a duration (24h: within the last 24 hours), >2026-01-31, <2026-01-31T08:00, or 2026-01-01..2026-01-31"
DAY = timedelta(days=1)


def read_data(text: str, outline: Outline, hidden: Collection[str]) -> Mapping[str, Any]:
    """Read ``amount>100 to:Rome`` into ``{"where": {"amount": {"gt": 100}, "to": "Rome"}}``."""
    where: dict[str, Any] = {}
    for term in split_line(text):
        rule = _read_rule(term, _find_types(term.key, outline, hidden))
        if term.key in where:
            rule = _join(term.key, where[term.key], rule)
        where[term.key] = rule
    return {"where": where} if where else {}


def _find_types(name: str, outline: Outline, hidden: Collection[str]) -> tuple[str, ...]:
    if name in hidden:
        raise Concealed(outline.id, name)
    for field in outline.data:
        if field.name == name:
            return field.types
    listed = ", ".join(field.name for field in outline.data if field.name not in hidden) or "none"
    raise BadInput(f"the machine has no data field {name[:100]!r}; its fields: {listed}")


def _read_rule(term: LineTerm, types: tuple[str, ...]) -> Any:
    if term.sign in EQUAL:
        return condition(term.value, types)
    if term.sign not in BOUNDS:
        raise BadInput(f"a data field takes : = > >= < <=, not {term.sign}; write {term.key}:value")
    number = _number(term.value) if "integer" in types or "number" in types else None
    if number is None and "string" not in types:
        raise BadInput(f"{term.value[:100]!r} is no number; write {term.key}{term.sign}100")
    return {BOUNDS[term.sign]: term.value if number is None else number}


def _join(name: str, first: Any, second: Any) -> Any:
    """Join two bounds of one field; anything else cannot hold twice."""
    ranges = all(isinstance(rule, Mapping) and set(rule) <= set(BOUNDS.values()) for rule in (first, second))
    if not ranges or set(first) & set(second):
        raise BadInput(f"the conditions on {name[:100]!r} exclude each other or stand twice; write one, or two bounds")
    return {**first, **second}


def condition(text: str, types: tuple[str, ...]) -> Any:
    """Return a condition for ``Engine.find``: a number if the field holds numbers and the text is one."""
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    numbers = "integer" in types or "number" in types
    if numbers and ".." in text:
        low, high = (_number(end) for end in text.split("..", 1))
        ends = {"ge": low, "le": high}
        if low is not None or high is not None:
            return {name: end for name, end in ends.items() if end is not None}
    elif numbers and (number := _number(text)) is not None:
        return number
    if "string" in types:
        return {"prefix": text[:-1]} if len(text) > 1 and text.endswith("*") else text
    raise BadInput(f"{text[:100]!r} does not fit that field; use {HINT}")


def _number(text: str) -> int | float | None:
    """Return None for an open end, or for a text that is no number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def read_suspended(text: str) -> Mapping[str, Any]:
    """Read yes or no."""
    if text.lower() not in ("yes", "no", "true", "false"):
        raise BadInput(f"{text[:100]!r} is neither yes nor no")
    return {"suspended": text.lower() in ("yes", "true")}


def read_created(text: str) -> Mapping[str, Any]:
    """Read bounds of the time of creation, all of which have to hold. A time without a zone is in the person's."""
    found: dict[str, int] = {}
    for part in text.split():
        bounds = _read_bounds(part)
        if set(bounds) & set(found):
            raise BadInput(f"{text[:100]!r} bounds the time of creation twice; use {CREATED_HINT}")
        found |= bounds
    return {"created": found}


def _read_bounds(part: str) -> dict[str, int]:
    sign = next((sign for sign in (">=", "<=", ">", "<") if part.startswith(sign)), "")
    value = part.removeprefix(sign)
    length = durations.parse_duration(value)
    if not sign and length is not None:
        return {"ge": round(time() * 1000) - length}
    low, dots, high = value.partition("..")
    if not sign and dots:
        return {"ge": _read_moment(low)[0], "lt": _read_moment(high)[1]}
    start, end = _read_moment(value)
    if not sign:
        return {"ge": start, "lt": end}
    # A day is all its hours: after the day, up to the end of the day.
    return {{">": "ge", ">=": "ge", "<": "lt", "<=": "lt"}[sign]: end if sign in (">", "<=") else start}


def _read_moment(text: str) -> tuple[int, int]:
    """Return the ms at which a day or a moment begins, and at which it is over."""
    try:
        day = len(text) == len("2026-01-31")
        start = datetime.combine(date.fromisoformat(text), datetime.min.time()) if day else datetime.fromisoformat(text)
        zone = start.tzinfo or timezone.get_current_timezone()
        end = start + DAY if day else start + timedelta(milliseconds=1)
        return tuple(round(one.replace(tzinfo=zone).timestamp() * 1000) for one in (start, end))  # type: ignore[return-value]
    except (ValueError, OverflowError):
        raise BadInput(f"{text[:100]!r} is not a date; use {CREATED_HINT}") from None
