"""``queues`` of a machine: how many jobs of a queue run at a time, and how fast they are handed out."""

from __future__ import annotations

from .. import limits, rates
from .model import Limit
from .path import quote
from .place import Place

_HINTS = {"limit": 'write "concurrency"', "max": 'write "concurrency"', "per": 'write "rate": "100/s"'}


def read_queues(place: Place | None) -> dict[str, Limit]:
    if place is None or not place.is_object("an object of queues", 'write {"mail": {"concurrency": 10}}'):
        return {}
    found = {}
    for name, below in place.items():
        if (why := limits.check_queue_name(name)) is not None:
            below.error("SB107", f"the queue name {quote(name)} {why}")
        elif below.is_object("an object", 'write {"concurrency": 10, "rate": "100/s"}'):
            found[name] = _read_limit(below)
    return found


def _read_limit(place: Place) -> Limit:
    place.refuse_unknown(("concurrency", "rate", "description"), _HINTS)
    concurrency, rate = place.get("concurrency"), place.get("rate")
    at_a_time = concurrency.whole(1, limits.MAX_CONCURRENCY) if concurrency else None
    text = rate.text("a rate", rates.HINT) if rate else None
    parsed = rates.parse(text) if text is not None else None
    if rate is not None and text is not None and parsed is None:
        rate.error("SB113", f"{quote(text)} is no rate", rates.HINT)
    return Limit(at_a_time, *(parsed or (0, 0)))
