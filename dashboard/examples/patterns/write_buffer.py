"""The write buffer on the Patterns page: clicks at doors wait until somebody writes them out, or dies of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine.connection.client import Client
from machines.engine.errors import BadInput
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Batch, Gone, Write, WriteBuffer

TITLE = "Write buffer"
TELLS = "Combines many small writes into few large ones; a batch of a crashed flusher is retried."

NAME, MOST = "demo.clicks", 50
DOORS = ("front door", "back door", "gate")
LEASE, LIMIT = 10.0, 2  # seconds, entries of a batch
WRITTEN, KEPT = "patterns.write_buffer.written", 600  # seconds
IDS_KEPT = 200


def MAKE(redis: Client, prefix: str) -> WriteBuffer:
    return WriteBuffer(redis, NAME, prefix=prefix, most=MOST)


def example(buffer: WriteBuffer) -> None:
    buffer.add("front door", counters={"clicks": 1}, fields={"by": "ann"})
    buffer.add("front door", counters={"clicks": 2}, fields={"by": "ben"})
    batch = buffer.claim(lease=30)  # seconds, for one flusher
    (entry,) = batch.entries
    assert (entry.entity, entry.counters, entry.fields) == ("front door", {"clicks": 3}, {"by": "ben"})
    buffer.settle(batch)  # written, and gone; without this it comes again when its lease ends
    assert buffer.size() == 0


@dataclass(frozen=True, slots=True)
class Row:
    """What a table of a database would hold: how often it was written, and the sum."""

    door: str
    writes: int
    clicks: int


def show(request: HttpRequest) -> dict[str, Any]:
    stats, keys = get_pattern(MAKE).stats(), PatternKeys(get_engine().keys.prefix).buffer(NAME, 0)
    rows = cache.get(WRITTEN, {"rows": {}})["rows"]
    return {
        "stats": stats,
        "doors": DOORS,
        "most": MOST,
        "lease": int(LEASE),
        "rows": [Row(door, *rows.get(door, (0, 0))) for door in DOORS],
        "keys": [keys.pending, *(keys.open(door) for door in DOORS), keys.claims]
        + [keys.batch(lent.id) for lent in stats.lent[:3]],
    }


def add(request: HttpRequest, asked: QueryDict) -> str:
    door = asked.get("door", "")
    if door not in DOORS:
        raise BadInput(f"there are {', '.join(DOORS)}, and no {door!r:.40}", code="SB401")
    get_pattern(MAKE).add(door, counters={"clicks": 1}, fields={"by": request.user.get_username()[:150]})
    return f"one click at the {door} buffered"


def burst(request: HttpRequest, asked: QueryDict) -> str:
    get_pattern(MAKE).add_many(Write(DOORS[number % 3], {"clicks": 1}) for number in range(100))
    return "100 clicks buffered in one call, in at most three entries"


def flush(request: HttpRequest, asked: QueryDict) -> str:
    told: list[str] = []
    if not get_pattern(MAKE).flush(lambda batch: told.append(write(batch)), limit=LIMIT, lease=LEASE):
        raise Gone("nothing to flush: add clicks, or wait until a lease expires")
    return f"{told[0]}, and settled"


def die(request: HttpRequest, asked: QueryDict) -> str:
    """Half of the times it has written already, so that the same comes twice."""
    batch = get_pattern(MAKE).claim(limit=LIMIT, lease=LEASE)
    if batch is None:
        raise Gone("nothing to claim: add clicks, or wait until a lease expires")
    if asked.get("when") == "written":
        return f"{write(batch)}, then its flusher crashed: retried in {LEASE:.0f} s, counted once"
    return f"batch {batch.id} was claimed and its flusher crashed: retried in {LEASE:.0f} s"


def write(batch: Batch) -> str:
    """As a transaction would: the sums and the ids of what is in them are kept together."""
    kept = cache.get(WRITTEN, {"rows": {}, "ids": []})
    fresh = [entry for entry in batch.entries if entry.id not in kept["ids"]]
    for entry in fresh:
        writes, clicks = kept["rows"].get(entry.entity, (0, 0))
        kept["rows"][entry.entity] = (writes + 1, clicks + entry.counters["clicks"])
    kept["ids"] = [*kept["ids"], *(entry.id for entry in fresh)][-IDS_KEPT:]
    cache.set(WRITTEN, kept, KEPT)
    twice = len(batch.entries) - len(fresh)
    many = "entry" if len(fresh) == 1 else "entries"
    known = f", {twice} duplicates skipped" if twice else ""
    return f"batch {batch.id}, attempt {batch.takes}: {len(fresh)} {many} written{known}"


ACTS = {"add": add, "burst": burst, "flush": flush, "die": die}
