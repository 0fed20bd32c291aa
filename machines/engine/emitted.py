"""What machines emitted, read from the logs of their partitions: where each ends, and what follows a place in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .calls import Caller
from .keys import Keys

START = "0-0"

Place = tuple[str, int]  # machine, partition


@dataclass(frozen=True, slots=True)
class End:
    """``added``: how many entries the log ever got. ``gone``: how many of them, the oldest, it has let go.
    ``last``: the id of the newest."""

    added: int
    gone: int
    last: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One of a log. ``kind``: emit, log, message, deleted, queue or timer. ``data``: what came with it, any JSON."""

    id: str
    kind: str
    name: str
    data: Any
    instance: str
    version: int

    @property
    def at(self) -> int:
        """ms since the epoch, by the clock of the server that took it."""
        return int(self.id.partition("-")[0])


class Emitted:
    def __init__(self, caller: Caller, keys: Keys) -> None:
        self._caller = caller
        self._keys = keys

    def now(self) -> int:
        """The server's clock, ms since the epoch, by which ids are made; of a cluster, the one furthest behind."""
        told = self._caller.command("TIME")
        clocks = told.values() if isinstance(told, Mapping) else [told]
        return min(int(seconds) * 1000 + int(micros) // 1000 for seconds, micros in clocks)

    def ends(self) -> dict[Place, End]:
        """Of every partition of every machine, in one round trip. A log that has nothing yet ends at its start."""
        counts = self._caller.command("HGETALL", self._keys.machines)
        places = [(machine, n) for machine, count in sorted(counts.items()) for n in range(int(count))]
        logs = [self._log(place) for place in places]
        there = self._caller.commands([(log, ("EXISTS", log)) for log in logs])
        known = [(place, log) for place, log, held in zip(places, logs, there, strict=True) if held]
        found = self._caller.commands([(log, ("XINFO", "STREAM", log)) for _, log in known])
        ends = dict.fromkeys(places, End(0, 0, START))
        ends.update((place, _end(told)) for (place, _), told in zip(known, found, strict=True))
        return ends

    def after(self, place: Place, id: str, *, count: int = 500) -> list[Entry]:
        """The entries that follow ``id``, oldest first, ``count`` at most."""
        reply = self._caller.command("XRANGE", self._log(place), f"({id}", "+", "COUNT", count)
        return [_entry(key, _pairs(fields)) for key, fields in reply]

    def _log(self, place: Place) -> str:
        return self._keys.partition(*place).log


def _pairs(told: Any) -> dict[str, Any]:
    """Fields and values, flat or already a mapping: that depends on the protocol's version."""
    if isinstance(told, Mapping):
        return {str(name): value for name, value in told.items()}
    return {str(name): value for name, value in zip(told[::2], told[1::2], strict=True)}


def _end(told: Mapping[str, Any] | Sequence[Any]) -> End:
    facts = _pairs(told)
    added = int(facts["entries-added"])
    return End(added, added - int(facts["length"]), str(facts["last-generated-id"]))


def _entry(id: str, fields: Mapping[str, Any]) -> Entry:
    try:
        data = json.loads(fields.get("data") or "null")
    except ValueError:
        data = None
    version = fields.get("version") or "0"
    return Entry(
        str(id), str(fields.get("kind", "")), str(fields.get("name", "")), data, str(fields.get("instance", "")),
        int(float(version)),
    )  # fmt: skip
