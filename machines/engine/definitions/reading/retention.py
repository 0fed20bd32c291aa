"""Reads ``retain``: how long finished instances, dead jobs and log entries of a machine are kept, and how many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine import limits
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import Report
from machines.engine.rates import UNITS

HINT = 'write a number and a unit, such as "30 days", "30d", "12h" or "90m"'
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|seconds?|m|minutes?|h|hours?|d|days?)")
_KEYS = ("finished", "most", "archive", "dead", "log")
_HINTS = {
    "history": 'write "history" beside "retain": the number of steps kept for each instance',
    "logs": 'write "log"',
    "age": 'write "finished"',
    "max": 'write "most"',
    "count": 'write "most"',
}


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a machine is kept. None: without a bound.

    ``finished``: ms for which an instance is kept after it ended; ``most``: finished instances that are kept, the
    newest; ``archive``: whether they are archived before they go (None: as the installation does); ``dead``: ms for
    which dead jobs are kept; ``log``: ms for which entries of the log are kept.
    """

    finished: int | None = None
    most: int | None = None
    archive: bool | None = None
    dead: int | None = None
    log: int | None = None

    def __bool__(self) -> bool:
        return any(bound is not None for bound in (self.finished, self.most, self.dead, self.log))

    def fill_from(self, default: Retention) -> Retention:
        """Return these bounds, and those of ``default`` where there is none."""
        own = {name: getattr(self, name) for name in _KEYS}
        return Retention(**{name: getattr(default, name) if bound is None else bound for name, bound in own.items()})


def parse_age(text: str) -> int | None:
    """Return an age in ms, written as a duration or with the unit in full; None when the text is neither."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        return None
    unit = match[2] if match[2] in UNITS else match[2][0]
    return round(float(match[1]) * UNITS[unit])


def read_retention(place: Place | None) -> Retention:
    """Read ``retain``, an age or an object. What is invalid is reported and left out."""
    if place is None or place.broken:
        return Retention()
    if isinstance(place.value, str):
        return Retention(finished=_read_age(place))
    if not place.is_object("an age or an object", 'write "30 days" or {"finished": "30 days", "most": 100000}'):
        return Retention()
    place.refuse_unknown(_KEYS, _HINTS)
    most, archive = place.get("most"), place.get("archive")
    return Retention(
        finished=_read_age(place.get("finished")),
        most=most.whole(0, limits.MAX_RETAINED) if most else None,
        archive=archive.flag() if archive else None,
        dead=_read_age(place.get("dead")),
        log=_read_age(place.get("log")),
    )


def find_retention(definition: Mapping[str, Any]) -> Retention:
    """Return the bounds that a published definition declares."""
    if "retain" not in definition:
        return Retention()
    return read_retention(Place(definition["retain"], ("retain",), Report()))


def _read_age(place: Place | None) -> int | None:
    if place is None or place.broken:
        return None
    if not isinstance(place.value, str):
        place.error("SB113", "not a duration", HINT)
        return None
    age = parse_age(place.value)
    if age is None:
        place.error("SB113", "not a duration", HINT)
    elif age > limits.MAX_AGE:
        place.error("SB114", f"{age} ms is more than {limits.MAX_AGE} ms, a hundred years")
        return None
    return age
