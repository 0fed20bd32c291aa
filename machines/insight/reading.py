"""Reads instances and their histories from Redis, in portions, within a share of the server's time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import Engine
from machines.engine.connection import replies, routing
from machines.engine.connection.calls import translate
from machines.engine.instances.retirement import FinishedInstance
from machines.engine.keys import Partition
from machines.server_share import ServerShare

PAGE = 2000  # ids of one read of an index: about 1 ms of the server
PORTION = 200  # instances of one round trip
FACTS = ("_version", "_created", "_def", "_state", "_entered")
MARGIN = 4  # steps that are read beyond those that are missing: some may have come meanwhile

Entry = list[Any]


@dataclass(frozen=True, slots=True)
class Sighting:
    """An instance as it was found. ``data``: its indexed fields as Redis holds them."""

    id: str
    revision: int
    created: int
    version: int
    state: str
    entered: int
    data: Mapping[str, str]

    @classmethod
    def of(cls, id: str, raw: Mapping[str, str], fields: Sequence[str]) -> Sighting:
        return cls(
            id, int(raw["_version"]), replies.read_whole(raw["_created"]), int(raw["_def"].partition(":")[0]),
            raw["_state"].replace("\n", ", "), replies.read_whole(raw["_entered"]),
            {name: raw[name] for name in fields if raw.get(name) is not None},
        )  # fmt: skip


class HistoryReader:
    """Reads the partitions of machines."""

    def __init__(self, engine: Engine, share: ServerShare) -> None:
        self._engine = engine
        self._share = share

    def partitions(self, machine: str) -> list[Partition]:
        """List the partitions of a machine. Raises UnknownMachine."""
        return self._engine.retirement().partitions(machine)

    def now(self, partition: Partition) -> int:
        """Return the ms of the server of a partition."""
        (time,) = self._send([(partition.meta, ("TIME",))])
        return int(time[0]) * 1000 + int(time[1]) // 1000

    def list_entered(self, partition: Partition, since: int, until: int) -> Iterator[list[str]]:
        """Yield ids of the instances that entered their state in a time, of one state after the other."""
        states = sorted(self._send([(partition.states, ("SMEMBERS", partition.states))])[0])
        keys = [partition.state(state) for state in states]
        counts = self._send([(key, ("ZCOUNT", key, since, until)) for key in keys])
        for key, count in zip(keys, counts, strict=True):
            if count:
                yield from self._read_index(key, since, until)

    def _read_index(self, key: str, since: int, until: int) -> Iterator[list[str]]:
        """Read by time and not by place: what leaves the index meanwhile does not hide what comes after it."""
        low, most, seen = since, PAGE, set[str]()
        while True:
            (found,) = self._send([(key, ("ZRANGEBYSCORE", key, low, until, "WITHSCORES", "LIMIT", 0, most))])
            rows = found if not found or isinstance(found[0], list | tuple) else _pair(found)
            fresh = [id for id, _ in rows if id not in seen]
            if fresh:
                yield fresh
            if len(rows) < most:
                return
            last = int(float(rows[-1][1]))
            if last == low and not fresh:
                most *= 2  # more of them than that entered it in one ms
            low, seen = last, {id for id, score in rows if int(float(score)) == last}

    def look(self, partition: Partition, ids: Sequence[str], fields: Sequence[str]) -> list[Sighting]:
        """Read what there is to know of these instances beside their steps. Those that are gone are left out."""
        names, found = (*FACTS, *fields), []
        for begin in range(0, len(ids), PORTION * 5):
            some = ids[begin : begin + PORTION * 5]
            rows = self._send([(key, ("HMGET", key, *names)) for key in map(partition.instance, some)])
            for id, row in zip(some, rows, strict=True):
                if None not in row[: len(FACTS)]:
                    found.append(Sighting.of(id, dict(zip(names, row, strict=True)), fields))
        return found

    def read(
        self, partition: Partition, wanted: Sequence[tuple[Sighting, int]]
    ) -> Iterator[tuple[Sighting, list[Entry]]]:
        """Yield entries of the history above a revision, oldest first, of instances that are still there."""
        for begin in range(0, len(wanted), PORTION):
            some = wanted[begin : begin + PORTION]
            calls = [(one, known - one.revision - MARGIN if known else 0) for one, known in some]
            answers = self._histories(partition, calls)
            again = [
                (one, 0)
                for (one, known), (length, entries) in zip(some, answers, strict=True)
                if known and entries and entries[0][0] > known + 1 and length > len(entries)
            ]
            whole = dict(zip((one.id for one, _ in again), self._histories(partition, again), strict=True))
            for (one, _), answer in zip(some, answers, strict=True):
                yield one, whole.get(one.id, answer)[1]

    def _histories(self, partition: Partition, calls: Sequence[tuple[Sighting, int]]) -> list[tuple[int, list[Entry]]]:
        sent = [(partition.meta, ("FCALL", "sb_history", 1, partition.root, one.id, first, -1)) for one, first in calls]
        found = []
        for answer in self._send(sent):
            is_there = answer[0] == replies.Status.OK
            found.append((int(answer[1]), [replies.decode_entry(one) for one in answer[3:]]) if is_there else (0, []))
        return found

    def _send(self, sent: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """Send commands between two looks at the clock of the server, and rest as long as the share asks."""
        if not sent:
            return []
        key = sent[0][0]
        begin, *answers, end = routing.send(self._engine.client, [(key, ("TIME",)), *sent, (key, ("TIME",))])
        for answer in (begin, *answers, end):
            if isinstance(answer, Exception):
                translate(answer)
        self._share.spend(max(0, (int(end[0]) - int(begin[0])) * 1_000_000 + int(end[1]) - int(begin[1])))
        return answers


def _pair(row: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(row[::2], row[1::2], strict=True))


def read_archived(found: FinishedInstance, fields: Sequence[str]) -> tuple[Sighting, list[Entry]]:
    """Return the same of an archived instance."""
    return Sighting.of(found.id, found.raw, fields), [replies.decode_entry(step) for step in found.steps]
