"""Compare and set on the Patterns page: one text, a writer who saw an older one, and an update that others disturb."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine import BadInput
from machines.engine.connection.client import Client
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Changed, Records

TITLE = "Compare and set"
TELLS = "Write only over the value that was read; on a conflict, retry with the current value."

NAME, KEY = "demo.cas", "note"
TTL = 3600.0  # seconds
LONGEST = 80  # characters


def records(redis: Client, prefix: str) -> Records:
    return Records(redis, NAME, prefix=prefix, ttl=TTL)


MAKE = records


def example(records: Records) -> None:
    stock = records.update("example", lambda count: (count or 0) + 1)
    assert records.get("example") == stock
    later = records.put("example", stock.value + 10, expect=stock.generation)
    try:
        records.put("example", "from an older reading", expect=stock.generation)
    except Changed as changed:
        found = changed.found  # what is there now: no need to read it again
    assert found == later
    records.delete("example", expect=later.generation)


def show(request: HttpRequest) -> dict[str, Any]:
    keys, record = PatternKeys(get_engine().keys.prefix).record(NAME), get_pattern(records).get(KEY)
    value = record.value if isinstance(record.value, dict) else {}
    return {
        "text": value.get("text", ""), "generation": record.generation, "former": value.get("former", 0),
        "tries": value.get("tries", 0), "longest": LONGEST, "keys": [keys.one(KEY), keys.last],
    }  # fmt: skip


def put(request: HttpRequest, asked: QueryDict) -> str:
    """Over the generation that the form was rendered with."""
    seen, text = asked.get("generation", ""), asked.get("text", "")[:LONGEST]
    if not seen.isascii() or not seen.isdigit() or len(seen) > 16:
        raise BadInput(f"a generation is a whole number, not {seen!r:.40}", code="SB402")
    written = get_pattern(records).put(KEY, {"text": text, "former": int(seen), "tries": 1}, expect=int(seen))
    return f"generation {seen} replaced by {written.generation}"


def race(request: HttpRequest, asked: QueryDict) -> str:
    """An update that two other writers get in the way of."""
    held, seen = get_pattern(records), []

    def function(value: Any) -> Any:
        seen.append(value)
        if len(seen) < 3:
            text = f"concurrent write {len(seen)}"
            held.put(KEY, {"text": text, "former": held.get(KEY).generation}, expect=None)
        return {"text": f"written at attempt {len(seen)}", "former": held.get(KEY).generation, "tries": len(seen)}

    written = held.update(KEY, function)
    return f"two conflicts; the third attempt wrote generation {written.generation}"


ACTS = {"put": put, "race": race}
