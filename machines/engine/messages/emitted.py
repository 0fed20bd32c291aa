"""The logs of what machines emitted: where they are, where each ends, and which have new entries.

They hold every step, too, of machines for which ``log_steps`` asked for that. Entries are read by groups
(``machines.patterns.bus.AttachedStream``): the engine keeps what a group has not done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import read_pairs, require_ok
from machines.engine.errors import EngineUnavailable, UnknownMachine
from machines.engine.keys import Keys

START = "0-0"

Place = tuple[str, int]  # machine, partition


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log. ``added``: entries the log ever got; ``gone``: how many of them, the oldest, were trimmed;
    ``last``: the id of the newest."""

    added: int
    gone: int
    last: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a log. ``kind``: emit, log, step, message, deleted, retired, queue, timer or version. ``data``: any
    JSON; of a step, whose ``name`` is the event, its leaf states: a text, or a list of several."""

    id: str
    kind: str
    name: str
    data: Any
    instance: str
    revision: int

    @property
    def at(self) -> int:
        """Return ms since the epoch, by the clock of the server that added the entry."""
        return int(self.id.partition("-")[0])

    @property
    def state(self) -> str:
        """Return the configuration after a step as one line of text, like ``Instance.state``."""
        return ", ".join(map(str, self.data)) if isinstance(self.data, list) else str(self.data)


class EmittedLogs:
    """Reads where logs end. A place is a machine and the number of a partition. ``directory`` returns machine -> number
    of partitions."""

    def __init__(self, caller: Caller, keys: Keys, directory: Callable[[], Mapping[str, int]]) -> None:
        self._caller = caller
        self._keys = keys
        self._directory = directory

    def now(self) -> int:
        """Return ms since the epoch by the server's clock, which makes the ids; on a cluster, by the slowest clock."""
        return min(self._caller.read_clocks())

    @property
    def spread(self) -> bool:
        """Tell whether logs live on several servers: one command cannot wait for all of them."""
        return self._caller.spread

    def log_steps(self, machine: str, *, seconds: float) -> list[Place]:
        """Have every step of a machine written to its logs for some time, 30 days at most; 0 ends it.

        Returns the places in which steps were not logged until now: what happened there before is in no log. Raises
        UnknownMachine, EngineUnavailable.
        """
        places = [(machine, n) for n in range(self._directory().get(machine, 0))]
        if not places:
            raise UnknownMachine(machine)
        answers = self._caller.many([("sb_log_steps", self.root(place), (round(seconds * 1000),)) for place in places])
        fresh: list[Place] = []
        for place, answer in zip(places, answers, strict=True):
            require_ok("sb_log_steps", answer)
            fresh += [place] if int(answer[1]) == 0 else []
        return fresh

    def places(self) -> list[Place]:
        """List every partition of every machine. One round trip."""
        return [(machine, n) for machine, count in sorted(self._directory().items()) for n in range(count)]

    def ends(self, places: Iterable[Place] | None = None) -> dict[Place, LogEnd]:
        """Return the end of these logs, or of all, in two round trips. An empty log ends at its start. Logs of
        partitions that do not answer are left out."""
        asked = self.places() if places is None else list(places)
        logs = [self._log(place) for place in asked]
        there = self._caller.commands_available([(log, ("EXISTS", log)) for log in logs])
        known = [(place, log) for place, log, held in zip(asked, logs, there, strict=True) if held == 1]
        found = self._caller.commands_available([(log, ("XINFO", "STREAM", log)) for _, log in known])
        ends = {place: LogEnd(0, 0, START) for place, held in zip(asked, there, strict=True) if held == 0}
        for (place, _), answer in zip(known, found, strict=True):
            if not isinstance(answer, EngineUnavailable):
                ends[place] = _read_end(answer)
        return {place: ends[place] for place in asked if place in ends}

    def find_new(self, known: Mapping[Place, str], *, wait: float = 0.0) -> list[Place]:
        """List the places whose logs have entries after the known id. One command, which waits up to ``wait``
        seconds; on a cluster one for each place, which do not wait."""
        if not known:
            return []
        logs = {self._log(place): place for place in known}
        if self._caller.spread:
            asked = [(log, ("XREAD", "COUNT", 1, "STREAMS", log, known[place])) for log, place in logs.items()]
            answers = self._caller.commands_available(asked)
            found = zip(known, answers, strict=True)
            return [place for place, answer in found if answer and not isinstance(answer, EngineUnavailable)]
        block = ("BLOCK", round(wait * 1000)) if wait >= 0.001 else ()
        answer = self._caller.command("XREAD", "COUNT", 1, *block, "STREAMS", *logs, *known.values())
        return [logs[str(log)] for log in _list_logs(answer)]

    def root(self, place: Place) -> str:
        """Return the root of a place's keys."""
        return self._keys.partition(*place).root

    def _log(self, place: Place) -> str:
        return self._keys.partition(*place).log


def _list_logs(answer: Any) -> list[Any]:
    return list(answer) if isinstance(answer, Mapping) else [log for log, _ in answer or ()]


def read_entry(id: str, fields: Mapping[str, Any]) -> LogEntry:
    """Read an entry as Redis returns it. Entries of other programs raise nothing."""
    try:
        data = json.loads(fields.get("data") or "null")
    except (ValueError, RecursionError):
        data = None
    try:
        revision = int(float(fields.get("version") or 0))
    except (ValueError, OverflowError):
        revision = 0
    return LogEntry(
        str(id), str(fields.get("kind", "")), str(fields.get("name", "")), data, str(fields.get("instance", "")),
        revision,
    )  # fmt: skip


def _read_end(answer: Mapping[str, Any] | Sequence[Any]) -> LogEnd:
    facts = read_pairs(answer)
    added = int(facts["entries-added"])
    return LogEnd(added, added - int(facts["length"]), str(facts["last-generated-id"]))
