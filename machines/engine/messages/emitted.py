"""What machines emitted: the logs of their partitions, where each ends, and which of them have something new.

Reading them is what groups are for (``machines.patterns.bus.Attached``): the engine keeps what a group has not done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.keys import Keys

START = "0-0"

Place = tuple[str, int]  # machine, partition


@dataclass(frozen=True, slots=True)
class LogEnd:
    """``added``: how many entries the log ever got. ``gone``: how many of them, the oldest, it has let go.
    ``last``: the id of the newest."""

    added: int
    gone: int
    last: str


@dataclass(frozen=True, slots=True)
class LogEntry:
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


class EmittedLogs:
    def __init__(self, caller: Caller, keys: Keys) -> None:
        self._caller = caller
        self._keys = keys

    def now(self) -> int:
        """The server's clock, ms since the epoch, by which ids are made; of a cluster, the one furthest behind."""
        told = self._caller.command("TIME")
        clocks = told.values() if isinstance(told, Mapping) else [told]
        return min(int(seconds) * 1000 + int(micros) // 1000 for seconds, micros in clocks)

    @property
    def spread(self) -> bool:
        """Do logs live on several servers? Then nobody can wait for all of them at once."""
        return self._caller.spread

    def places(self) -> list[Place]:
        """Every partition of every machine. One round trip."""
        counts = self._caller.command("HGETALL", self._keys.machines)
        return [(machine, n) for machine, count in sorted(counts.items()) for n in range(int(count))]

    def ends(self, places: Iterable[Place] | None = None) -> dict[Place, LogEnd]:
        """Of these, or of all, in two round trips. A log that has nothing yet ends at its start."""
        asked = self.places() if places is None else list(places)
        logs = [self._log(place) for place in asked]
        there = self._caller.commands([(log, ("EXISTS", log)) for log in logs])
        known = [(place, log) for place, log, held in zip(asked, logs, there, strict=True) if held]
        found = self._caller.commands([(log, ("XINFO", "STREAM", log)) for _, log in known])
        ends = dict.fromkeys(asked, LogEnd(0, 0, START))
        ends.update((place, _end(told)) for (place, _), told in zip(known, found, strict=True))
        return ends

    def news(self, known: Mapping[Place, str], *, wait: float = 0.0) -> list[Place]:
        """The places whose logs have something behind the id that is known. One command, which waits up to ``wait``
        seconds for it; on a cluster one for each place, and none of them waits."""
        if not known:
            return []
        logs = {self._log(place): place for place in known}
        if self._caller.spread:
            asked = [(log, ("XREAD", "COUNT", 1, "STREAMS", log, known[place])) for log, place in logs.items()]
            return [place for place, told in zip(known, self._caller.commands(asked), strict=True) if told]
        block = ("BLOCK", round(wait * 1000)) if wait >= 0.001 else ()
        told = self._caller.command("XREAD", "COUNT", 1, *block, "STREAMS", *logs, *known.values())
        return [logs[str(log)] for log in _logs(told)]

    def root(self, place: Place) -> str:
        """The beginning of the keys of a place, its log's among them."""
        return self._keys.partition(*place).root

    def _log(self, place: Place) -> str:
        return self._keys.partition(*place).log


def _logs(told: Any) -> list[Any]:
    return list(told) if isinstance(told, Mapping) else [log for log, _ in told or ()]


def read_entry(id: str, fields: Mapping[str, Any]) -> LogEntry:
    """An entry of a log as it stands in Redis. What another program has written there raises nothing."""
    try:
        data = json.loads(fields.get("data") or "null")
    except (ValueError, RecursionError):
        data = None
    try:
        version = int(float(fields.get("version") or 0))
    except (ValueError, OverflowError):
        version = 0
    return LogEntry(
        str(id), str(fields.get("kind", "")), str(fields.get("name", "")), data, str(fields.get("instance", "")),
        version,
    )  # fmt: skip


def _pairs(told: Any) -> dict[str, Any]:
    """Fields and values, flat or already a mapping: that depends on the protocol's version."""
    if isinstance(told, Mapping):
        return {str(name): value for name, value in told.items()}
    return {str(name): value for name, value in zip(told[::2], told[1::2], strict=True)}


def _end(told: Mapping[str, Any] | Sequence[Any]) -> LogEnd:
    facts = _pairs(told)
    added = int(facts["entries-added"])
    return LogEnd(added, added - int(facts["length"]), str(facts["last-generated-id"]))
