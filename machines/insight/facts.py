"""Reads instances and their histories from Redis, in portions, within a share of the server's time; and turns the
history of an instance into rows of the store: one for each step, and one for the instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from machines.conf.server_share import ServerShare
from machines.engine import Engine
from machines.engine.connection import replies, routing
from machines.engine.connection.calls import translate
from machines.engine.definitions import outline
from machines.engine.instances.retirement import FinishedInstance
from machines.engine.keys import Partition

from .records import GAP

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


CREATE, MIGRATE = "(create)", "(migrate)"
ENDS = ("done.invoke.", "error.invoke.")
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """What the definition of a version says about steps: state -> tags, event of a job -> queue and handler."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    work: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> VersionFacts:
        found = outline(definition)
        tags: dict[str, tuple[str, ...]] = {}
        work: dict[str, tuple[str, str]] = {}
        for state in found.states:
            around = [tag for one in found.lineage(state.name) for tag in one.tags]
            tags[state.name] = tuple(dict.fromkeys(around))
            for invoke in state.invokes:
                work |= dict.fromkeys((f"{end}{invoke.id}" for end in ENDS), (invoke.queue, invoke.src))
        return cls(tags, work)


@dataclass(slots=True)
class Case:
    """An instance as far as its facts are known: the columns of its row. ``path``: see ``records.Path``;
    ``ended``: None where it was deleted before."""

    n: int
    instance: str
    created: int
    revision: int = 0
    first: int = 0
    last: int = 0
    entered: int = 0
    state: str = ""
    version: int = 0
    ended: bool | None = False
    path: list[str] = field(default_factory=list)
    visited: dict[str, None] = field(default_factory=dict)
    loops: int = 0
    steps: int = 0
    lost: int = 0
    data: str = "{}"
    tags: str = ""

    @classmethod
    def read(cls, row: Row) -> Case:
        case = cls(*row)
        path, visited = row[10], row[11]
        return replace(case, path=path.split("\t"), visited=dict.fromkeys(visited.split("\t")))

    def row(self) -> Row:
        return (
            self.n, self.instance, self.created, self.revision, self.first, self.last, self.entered, self.state,
            self.version, self.ended, "\t".join(self.path), "\t".join(self.visited), self.loops, self.steps, self.lost,
            self.data, self.tags,
        )  # fmt: skip

    def add(self, entries: Sequence[Sequence[Any]], version: int, known: Mapping[int, VersionFacts]) -> list[Row]:
        """Take the steps that are new, given as ``replies.decode_entry`` returns them, the oldest first; return their
        rows. ``version``: the one after the newest."""
        fresh = [entry for entry in entries if entry[0] > self.revision]
        versions = _number_versions(fresh, version)
        rows = [self._add(entry) for entry in fresh]
        self.version, self.steps = version, self.steps + len(fresh)
        return [
            (self.n, *row, of, *_describe(row[2], row[7], known.get(of)), *_read_job(entry))
            for row, of, entry in zip(rows, versions, fresh, strict=True)
        ]

    def close(self, revision: int, state: str, entered: int) -> None:
        """Count steps as lost that the history does not have up to a revision, after the last that it has."""
        if self.revision < revision:
            self.lost += revision - self.revision
            self.path.append(GAP)
            self._enter(state)
            self.first, self.last, self.entered = self.first or entered, entered, entered
            self.revision, self.state = revision, state

    def _add(self, entry: Sequence[Any]) -> Row:
        revision, at, event, state, transitions, actor = entry[:6]
        if event.startswith(ENDS):  # the actor is the job: no two steps have the same
            actor = ""
        text = ", ".join(state) if isinstance(state, list) else state
        gap = revision - self.revision - 1
        source: str | None = None if gap else self.state
        waited: int | None = at - self.entered if source else None
        if gap:
            self.lost += gap
            self.path.append(GAP)
        if gap or text != self.state or event == CREATE:
            self._enter(text)
            self.entered = at
        if not self.first or event == CREATE:
            self.first = at
        self.revision, self.last, self.state = revision, at, text
        return (revision, at, event, source or "", text, transitions, waited, actor or "")

    def _enter(self, state: str) -> None:
        """Lengthen the path, without the loop where the state was on it since the last gap."""
        self.visited[state] = None
        begin = len(self.path) - self.path[::-1].index(GAP) if GAP in self.path else 0
        if state in self.path[begin:]:
            self.loops += 1
            del self.path[self.path.index(state, begin) + 1 :]
        else:
            self.path.append(state)


def _number_versions(entries: Sequence[Sequence[Any]], version: int) -> list[int]:
    """Return the version that the instance had after each step."""
    found = []
    for entry in reversed(entries):
        if entry[2] == MIGRATE and isinstance(entry[7], dict):
            found.append(int(entry[7].get("to") or version))
            version = int(entry[7].get("from") or 0)
        else:
            found.append(version)
    return found[::-1]


def _describe(event: str, actor: str, known: VersionFacts | None) -> tuple[str, str, str]:
    """Return the kind of a step, and queue and handler of its job."""
    if event.startswith(ENDS):
        return ("job failed" if event[0] == "e" else "job", *(known.work.get(event, ("", "")) if known else ("", "")))
    if event.startswith("after."):
        return "timer", "", ""
    if event.startswith("("):
        return "creation" if event == CREATE else "repair", "", ""
    return "person" if actor else "event", "", ""


def _read_job(entry: Sequence[Any]) -> Row:
    """Return worker, attempt and times of the job whose end a step is, as far as its entry has them."""
    queued, retried, ran, attempt, worker = entry[10] if len(entry) > 10 else (None, None, None, None, "")
    return worker, attempt, queued, retried, ran
