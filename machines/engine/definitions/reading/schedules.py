"""Reads ``schedules``: what is done to a machine at certain times. Only their shape: the engine has no calendar."""

from __future__ import annotations

from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote

KEYS = ("name", "when", "zone", "what", "overlap", "jitter", "catch_up", "bound", "start", "end", "description")
MAX_SCHEDULES = 50
_FORM = 'write {"name": ..., "when": {"cron": "30 2 * * *"}, "what": {"do": "create"}}'


def read_schedules(place: Place | None) -> None:
    """Report what has the wrong shape."""
    if place is None or not place.is_array("a list of schedules"):
        return
    if len(place.value) > MAX_SCHEDULES:
        place.error("SB111", f"{len(place.value)} schedules; at most {MAX_SCHEDULES} are allowed")
        return
    names: set[str] = set()
    for one in place.one_or_many():
        if not one.is_object("a schedule", _FORM):
            continue
        one.refuse_unknown(KEYS)
        for key in ("name", "when", "what"):
            if key not in one:
                one.error("SB106", f'"{key}" is missing', _FORM)
        if (given := one.get("name")) is not None and (name := given.text("a name")) is not None:
            if name in names:
                given.error("SB115", f"another schedule is called {quote(name)}", "rename one of them")
            names.add(name)
        for key in ("when", "what"):
            if (inner := one.get(key)) is not None:
                inner.is_object("an object", _FORM)
