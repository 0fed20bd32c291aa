"""Reads and checks names in a definition."""

from __future__ import annotations

from collections.abc import Callable

from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote

Check = Callable[[object], str | None]


def require_key(place: Place, key: str) -> Place | None:
    found = place.get(key)
    if found is None:
        place.report.add("SB106", place.below(key), f'"{key}" is missing')
    return found


def read_name(place: Place | None, what: str, check: Check) -> str:
    """Read a name and check it; None for an invalid one."""
    text = place.text(f"the {what}'s name") if place else None
    if place is None or text is None:
        return ""
    why = check(text)
    if why is not None:
        place.error("SB107", f"the {what} name {quote(text)} {why}")
        return ""
    return text
