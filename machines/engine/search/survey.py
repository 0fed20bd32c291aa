"""Reads the figures of all machines for one process, and keeps them: what did not change is not read again.

Each partition has a stamp, the ms of its latest pulse. ``sb_survey`` takes many roots with the stamps of the last
reading and returns figures only where the stamp differs. A pulse covers the 50 ms after it, so a reading that is
younger than its stamp by less than that is not settled and is read again. Each reading says when the clock alone
changes it next: a timer becomes overdue, a service level is reached. From then on, and while jobs wait or timers are
overdue, it is read again once it is five seconds old.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from machines.engine.connection import replies, routing, waiting
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineFault, LookupFailed, SignalboxError
from machines.engine.jobs import queue_operations
from machines.engine.jobs.records import QueueStats, WorkerInfo
from machines.engine.jobs.wakeups import ServerMemory
from machines.engine.keys import get_machine
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Live


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of each machine and of its queues, by machine. ``faults``: machines that cannot be read, and why.
    ``missing``: roots of partitions that did not answer; the figures are those of the others. ``others``: machines that
    ``only`` left out. ``now``: ms by the server's clock, 0 for none. Where a survey was read with ``trust``, figures
    that did not change carry the ``now`` of their reading."""

    lives: dict[str, Live] = field(default_factory=dict)
    queues: dict[str, dict[str, QueueStats]] = field(default_factory=dict)
    faults: dict[str, SignalboxError] = field(default_factory=dict)
    workers: list[WorkerInfo] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    now: int = 0

    def only(self, names: Container[str]) -> Survey:
        """Return a copy with some machines only, and every worker."""
        return Survey(
            lives={name: live for name, live in self.lives.items() if name in names},
            queues={name: queues for name, queues in self.queues.items() if name in names},
            faults={name: fault for name, fault in self.faults.items() if name in names},
            workers=self.workers,
            others=self.others | {name for name in self.lives if name not in names},
            missing=tuple(root for root in self.missing if get_machine(root) in names),
            now=self.now,
        )


ROOTS = 100  # partitions of one call: at worst a few ms of the server
SETTLED_MS = 100  # a pulse lives for 50 ms
CLOCKED_MS = 5000  # age of figures that change by the clock
MAX_AGE_MS = 3_600_000  # age of any figures, and up to half as much more, so that they do not end together
WHOLE = 600.0  # seconds between two readings that do not trust the servers' memory


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures of one partition. ``at``: ms by the server's clock; ``queues``: as ``sb_stats`` returns them;
    ``fresh_until``: ms from which on they are read again, whether or not something was written."""

    at: int
    stamp: str
    live: Live
    queues: Mapping[str, Any]
    fresh_until: int

    def get_known_stamp(self, now: int) -> str:
        """Return the stamp to send; "" where the figures have to be read again."""
        return self.stamp if now < self.fresh_until else ""


@dataclass(frozen=True, slots=True)
class MergedSurvey:
    """Figures of a machine, and the readings they were made of."""

    parts: tuple[Reading, ...]
    live: Live
    queues: dict[str, QueueStats]


class SurveyReader:
    """Reads surveys. Safe to share between threads: those that ask while one reads share the next reading."""

    def __init__(self, caller: Caller, catalog: Catalog, memory: ServerMemory) -> None:
        self._caller = caller
        self._memory = memory
        self._catalog = catalog
        self._lock = waiting.Lock()
        self._readings: dict[str, Reading] = {}
        self._merged: dict[str, MergedSurvey] = {}
        self._whole_at = -WHOLE  # when all partitions were asked, by our clock (s)
        self._began = -1.0  # monotonic seconds at which the latest reading began
        self._latest = Survey()
        self._clock, self._read_at = 0, 0.0  # the server's time of the latest reading (ms), by our clock (s)

    def read(self, workers: Callable[[], list[WorkerInfo]], *, trust: bool = False) -> Survey:
        """Return the figures of all machines, none older than the call. Raises EngineUnavailable."""
        asked = time.monotonic()
        with self._lock:
            if self._began < asked:
                began = time.monotonic()
                self._latest = self._read(workers(), trust)
                self._began = began
            return self._latest

    def _read(self, workers: list[WorkerInfo], trust: bool) -> Survey:
        roots: dict[str, list[str]] = {}
        for name in sorted(self._catalog.recent_versions()) if trust else self._catalog.machines():
            try:
                roots[name] = [partition.root for partition in self._catalog.partitions(name)]
            except LookupFailed:  # deleted since the list was made
                continue
        asked = [root for each in roots.values() for root in each]
        now, answers, known = self._ask(asked, trust)
        if trust and known == len(asked) and not self._latest.missing and self._latest.lives.keys() == roots.keys():
            return replace(self._latest, workers=workers, now=now)
        whole = len(answers) == len(asked)
        self._readings = {root: answer for root, answer in answers.items() if isinstance(answer, Reading)}
        self._merged = {name: merged for name, merged in self._merged.items() if name in roots}
        found = Survey(workers=workers, now=now)
        missing: list[str] = []
        for name, each in roots.items():
            away = () if whole else tuple(root for root in each if root not in answers)
            missing += away
            self._add(
                found, name, tuple([answers[root] for root in each if root in answers]), away, None if trust else now
            )
        return replace(found, missing=tuple(missing)) if missing else found

    def _add(
        self,
        found: Survey,
        name: str,
        parts: tuple[Reading | SignalboxError | None, ...],
        missing: tuple[str, ...],
        now: int | None,
    ) -> None:
        """Add one machine. A part is None where the machine is no longer published. Parts are merged only where one of
        them was read anew. ``now``: ms that its figures carry, None for those of its reading."""
        merged = self._merged.get(name)
        if merged is None or merged.parts != parts:
            if not parts:
                return
            if None in parts:
                self._catalog.forget(name)
                return
            fault = next((part for part in parts if isinstance(part, SignalboxError)), None)
            if fault is not None:
                found.faults[name] = fault
                return
            read = tuple(part for part in parts if isinstance(part, Reading))
            live = replies.merge_live([part.live for part in read])
            stats = queue_operations.merge_stats([{"now": part.at, "queues": part.queues} for part in read])
            merged = self._merged[name] = MergedSurvey(read, live, stats)
        found.lives[name], found.queues[name] = merged.live, merged.queues
        if now is not None or missing:
            at = now or merged.live.now
            found.lives[name] = replace(merged.live, now=at, missing=missing)
            found.queues[name] = {q: replace(stats, now=at, missing=missing) for q, stats in merged.queues.items()}

    def _skip_untouched(self, roots: list[str], newest: int) -> dict[str, Reading]:
        """Return the held readings of roots that did not change since the latest reading, as the servers remember."""
        readings = self._readings
        held = {root: found for root in roots if (found := readings.get(root)) and newest < found.fresh_until}
        if not held:
            return {}
        _, touched, answered = self._memory.find_touched(held, self._clock)
        for root in touched | (held.keys() - answered):
            held.pop(root, None)
        return held

    def _ask(self, asked: list[str], trust: bool) -> tuple[int, dict[str, Reading | SignalboxError | None], int]:
        """Return the server's time in ms, what each root answered, and how many did not change, so that they were not
        asked; roots of nodes that are away are missing."""
        began = time.monotonic()
        newest = self._clock and self._clock + int((began - self._read_at) * 1000)
        known = self._skip_untouched(asked, newest) if trust and began - self._whole_at < WHOLE else {}
        if not known:
            self._whole_at = began
        roots = [root for root in asked if root not in known]
        chunks = [
            group[start : start + ROOTS]
            for group in routing.group_by_node(self._caller.client, roots)
            for start in range(0, len(group), ROOTS)
        ]
        replies_ = self._caller.many([("sb_survey", chunk[0], self._words(chunk, newest)) for chunk in chunks])
        found: dict[str, Reading | SignalboxError | None] = {}
        now, failed = 0, None
        for chunk, reply in zip(chunks, replies_, strict=True):
            if isinstance(reply, Exception):
                failed = reply
                continue
            if reply[0] != Status.OK:
                raise EngineFault(f"the figures cannot be read: {' '.join(map(str, reply))}")
            now = max(now, int(reply[1]))
            found |= self._take(chunk, int(reply[1]), reply[2:])
        if failed is not None and not known and not found:
            translate(failed)
        now = now or newest
        self._clock, self._read_at = now, time.monotonic()
        return now, known | found, len(known)

    def _words(self, roots: Iterable[str], now: int) -> list[str]:
        words = []
        for root in roots:
            held = self._readings.get(root)
            words += [root, held.get_known_stamp(now) if held else ""]
        return words

    def _take(self, roots: Sequence[str], now: int, items: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for root, item in zip(roots, items, strict=True):
            if item == "":
                found[root] = self._readings[root]
            elif item == "-":
                found[root] = None
            elif item.startswith("!"):
                found[root] = EngineFault(f"{root} cannot be read: {item[1:]}")
            else:
                found[root] = _read_item(root, now, json.loads(item))
        return found


def _read_item(root: str, now: int, seen: Mapping[str, Any]) -> Reading:
    stamp, live, queues = str(seen["stamp"]), replies.build_live(get_machine(root), seen["live"]), seen["queues"]
    return Reading(now, stamp, live, queues, _find_end(now, stamp, live, queues, seen["live"].get("next_change")))


def _find_end(now: int, stamp: str, live: Live, queues: Mapping[str, Any], next_change: float | None) -> int:
    """Find until when figures of ``now`` hold where nothing is written (ms). ``next_change``: when the clock alone
    changes them."""
    if not stamp or now - int(stamp) < SETTLED_MS:
        return 0
    if live.overdue or live.late or live.mail or any(row["ready"] for row in queues.values()):
        return now + CLOCKED_MS
    oldest = now + MAX_AGE_MS + (hash(live.machine) ^ now) % (MAX_AGE_MS // 2)
    return oldest if next_change is None else min(oldest, max(int(next_change), now + CLOCKED_MS))
