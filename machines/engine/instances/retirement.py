"""Lets go of finished instances: finds those that are due, reads them whole, and removes the ones that are unchanged.

Reading and removing are two calls, so that a copy can be written in between. The second call removes an instance only
if it is still of the revision that was read: one that was repaired or reopened meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance, Step

MAX_BATCH = 200  # instances of one call
UNPACKED = "unpacked"  # tells sb_retire that the histories were read by sb_history


@dataclass(frozen=True, slots=True)
class FinishedInstance:
    """A finished instance. ``raw``: the fields of its hash, as Redis holds them; ``steps``: entries of its history as
    JSON, oldest first."""

    machine: str
    id: str
    raw: Mapping[str, str]
    steps: Sequence[str]

    @property
    def revision(self) -> int:
        return int(self.raw["_version"])

    @property
    def version(self) -> int:
        return int(self.raw["_def"].partition(":")[0])

    @property
    def state(self) -> str:
        """Return the configuration as one line of text."""
        return self.raw["_state"].replace("\n", ", ")

    @property
    def created(self) -> int:
        return replies.read_whole(self.raw["_created"])

    @property
    def finished(self) -> int:
        """Return the ms at which it reached its final state."""
        return replies.read_whole(self.raw["_entered"])


@dataclass(frozen=True, slots=True)
class Batch:
    """Due instances of one partition. ``looked``: ids that the index gave; ``micros``: µs of the server's time."""

    partition: Partition
    instances: list[FinishedInstance]
    looked: int
    micros: int


@dataclass(frozen=True, slots=True)
class Retired:
    """What one call removed. ``stayed``: ids that changed since they were read; ``micros``: µs of the server's time."""

    gone: int
    stayed: list[str]
    micros: int


class Retirement:
    """Finds, reads and removes finished instances of the machines below one prefix."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def partitions(self, machine: str) -> list[Partition]:
        """List the partitions of a machine. Raises UnknownMachine."""
        return self._catalog.partitions(machine)

    def final_states(self, machine: str) -> list[str]:
        """List the final states, in any published version, in which an instance can have ended."""
        return self._catalog.final_states(machine)

    def count(self, machine: str, before: int | None = None) -> int:
        """Count the finished instances, or those that finished at or before a time in ms."""
        return sum(self._counts(machine, "-inf", "+inf" if before is None else before))

    def find_oldest(self, machine: str) -> int | None:
        """Return the ms at which the oldest finished instance ended; None where there is none."""
        keys = self._indexes(machine)
        rows = self._caller.commands([(key, ("ZRANGE", key, 0, 0, "WITHSCORES")) for key in keys])
        # A row is a pair of member and score, or both one after the other.
        pairs = [row[0] if isinstance(row[0], list | tuple) else row for row in rows if row]
        return min((int(float(score)) for _, score in pairs), default=None)

    def find_cutoff(self, machine: str, most: int, now: int) -> int | None:
        """Return a time in ms at or before which instances have to go so that at most ``most`` finished ones are left;
        None where there are no more than that. Some 40 round trips of ZCOUNT where there are."""
        if self.count(machine) <= most:
            return None
        low, high = 0, now  # more than ``most`` ended after ``low``; at most so many after ``high``
        while high - low > 1:
            middle = (low + high) // 2
            if sum(self._counts(machine, f"({middle}", "+inf")) > most:
                low = middle
            else:
                high = middle
        return high

    def read(self, machine: str, partition: Partition, state: str, before: int, *, skip: int, limit: int) -> Batch:
        """Read up to ``limit`` instances that entered a final state at or before a time, the oldest first; ``skip``:
        those to pass over. Two round trips."""
        self._caller.ensure()
        key = partition.state(state)
        words = (
            "ZRANGEBYSCORE",
            key,
            "-inf",
            before,
            "LIMIT",
            skip,
            arguments.check_between("limit", limit, 1, MAX_BATCH),
        )
        begin, ids, end = self._caller.commands([(key, ("TIME",)), (key, words), (key, ("TIME",))])
        micros = _micros(begin, end)
        if not ids:
            return Batch(partition, [], 0, micros)
        sent: list[tuple[str, Sequence[Any]]] = [(key, ("TIME",))]
        for id in ids:
            history = ("FCALL", "sb_history", 1, partition.root, id, 0, -1)
            sent += [(key, ("HGETALL", partition.instance(id))), (key, history)]
        begin, *rows, end = self._caller.commands([*sent, (key, ("TIME",))])
        found = [
            FinishedInstance(machine, id, raw, history[3:])
            for id, raw, history in zip(ids, rows[::2], rows[1::2], strict=True)
            if _is_whole(raw) and history[0] == Status.OK
        ]
        for one in found:
            replies.check_entries(one.steps)
        return Batch(partition, found, len(ids), micros + _micros(begin, end))

    def retire(self, batch: Batch, *, actor: str = "", reason: str = "") -> Retired:
        """Remove the instances of a batch that are finished and unchanged; the others stay. Atomic, up to some 2 ms:
        as many calls as that takes."""
        waiting, gone, micros = list(batch.instances), 0, 0
        stayed: list[str] = []
        while waiting:
            words = [word for one in waiting for word in (one.id, one.raw["_version"], one.raw["_created"])]
            (reply,) = self._caller.many([("sb_retire", batch.partition.root, (actor, reason, *words, UNPACKED))])
            replies.require_ok("sb_retire", reply, waiting[0].machine)
            gone, micros = gone + int(reply[1]), micros + int(reply[3])
            stayed += [str(id) for id in reply[4:]]
            waiting = waiting[int(reply[2]) :]
        return Retired(gone, stayed, micros)

    def trim_log(self, partition: Partition, before: int, most: int = 10_000) -> int:
        """Remove log entries from before a time in ms that no consumer group needs; return how many went."""
        (reply,) = self._caller.many([("sb_trim", partition.root, (before, most))])
        if isinstance(reply, Exception):
            translate(reply)
        return int(reply[1]) if reply[0] == Status.OK else 0

    def queues(self, partition: Partition) -> list[str]:
        """List the queues that a partition has ever had."""
        return sorted(self._caller.command("SMEMBERS", partition.queues))

    def purge_dead(self, partition: Partition, queue: str, before: int, *, actor: str = "", limit: int = 100) -> int:
        """Delete dead and handled jobs that died at or before a time in ms; return how many. An instance that waits
        for one gets ``error.invoke.<id>`` with the kind Purged, as after a purge by an operator."""
        places = ("dead", "handled")
        calls = [
            ("sb_purge", partition.root, (queue, place, limit, actor, "retention", "", "", "", before))
            for place in places
        ]
        gone = 0
        for reply in self._caller.many(calls):
            replies.require_ok("sb_purge", reply)
            gone += int(reply[1])
        return gone

    def decode(self, found: FinishedInstance) -> tuple[Instance, list[Step]]:
        """Return an instance and its steps, newest first, as ``Engine.get`` and ``Engine.history`` do. Raises
        UnknownMachine where its version is no longer published."""
        root = self._catalog.partition(found.machine, found.id).root
        types = self._catalog.types(found.machine, root, found.raw["_def"])
        instance = replies.read_instance(found.machine, found.id, found.raw, types)
        return instance, replies.read_steps(found.steps, found.version)

    def measure_memory(self, machine: str, *, samples: int = 10) -> int:
        """Estimate the bytes that one finished instance takes in Redis, by MEMORY USAGE of the oldest ones; 0 where
        there is none, or where the account may not ask."""
        sizes = []
        for partition in self.partitions(machine):
            for state in self.final_states(machine):
                ids = self._caller.command("ZRANGE", partition.state(state), 0, samples - 1)
                sent = [
                    (key, ("MEMORY", "USAGE", key))
                    for id in ids
                    for key in (partition.instance(id), partition.history(id))
                ]
                answers = self._caller.commands(sent)
                sizes += [int(a or 0) + int(b or 0) for a, b in zip(answers[::2], answers[1::2], strict=True)]
                if len(sizes) >= samples:
                    return sum(sizes) // len(sizes)
        return sum(sizes) // len(sizes) if sizes else 0

    def _indexes(self, machine: str) -> list[str]:
        states = self.final_states(machine)
        return [partition.state(state) for partition in self.partitions(machine) for state in states]

    def _counts(self, machine: str, low: str | int, high: str | int) -> Iterable[int]:
        keys = self._indexes(machine)
        return map(int, self._caller.commands([(key, ("ZCOUNT", key, low, high)) for key in keys]))


def _is_whole(raw: Mapping[str, str]) -> bool:
    """Tell whether a hash is an instance's; one may have gone since its id was read, or be damaged."""
    return all(name in raw for name in ("_version", "_state", "_def", "_created", "_entered"))


def _micros(begin: Sequence[Any], end: Sequence[Any]) -> int:
    """Return the µs between two answers of TIME."""
    return max(0, (int(end[0]) - int(begin[0])) * 1_000_000 + int(end[1]) - int(begin[1]))
