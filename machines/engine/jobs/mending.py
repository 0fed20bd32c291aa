"""The slow check that each job is in the one place its hash names.

Every move of a job is one atomic call, so the engine never loses a job between two places. But keys can be damaged from
outside: a person deletes or edits a sorted set, a backup is restored in part. A walk reads all keys with SCAN, in small
steps that may be hours apart, and calls ``sb_mend`` for the jobs and places it finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import redis

from machines.engine import arguments
from machines.engine.connection import routing
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.client import FAILURES
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineFault
from machines.engine.keys import Keys

KEYS = 1000  # keys that one step scans: well below a millisecond of the server's time
JOBS = 250  # jobs that one call checks: a few milliseconds
PAGES = 4  # pages of places that one step checks, each of about as many members

Call = tuple[str, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class MendReport:
    """What a check repaired. ``ready``, ``leased``, ``delayed``, ``dead``: jobs put back into that place; ``strays``:
    jobs taken out of a place that was not theirs; ``ghosts``: members without a job that were removed; ``words``:
    repaired fields of job hashes, and queues that were not listed. ``faults``: damage that could not be repaired."""

    ready: int = 0
    leased: int = 0
    delayed: int = 0
    dead: int = 0
    strays: int = 0
    ghosts: int = 0
    words: int = 0
    faults: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Return how many there were in all."""
        counted: list[int] = [getattr(self, kind) for kind in KINDS]
        return sum(counted)

    def __add__(self, other: MendReport) -> MendReport:
        counted: dict[str, Any] = {kind: getattr(self, kind) + getattr(other, kind) for kind in KINDS}
        return MendReport(**counted, faults=tuple(dict.fromkeys(self.faults + other.faults)))

    def __str__(self) -> str:
        return ", ".join(f"{found} {kind}" for kind in KINDS if (found := getattr(self, kind))) or "nothing"


KINDS = tuple(field.name for field in fields(MendReport) if field.name != "faults")


class MendWalk:
    """One walk over all jobs of one machine, or of all machines below the prefix, on each server that holds some. Jobs
    that move meanwhile may be met twice or not at all. Not to be shared between threads."""

    def __init__(self, caller: Caller, keys: Keys, machine: str | None = None) -> None:
        self._caller = caller
        self._keys = keys
        self._pattern = keys.jobs_pattern(machine)
        self._nodes: list[redis.Redis] | None = None  # servers still to scan; None before the first step
        self._cursor = 0
        self._pages: list[tuple[str, str, str, str]] = []  # root, queue, place, cursor

    @property
    def over(self) -> bool:
        """Tell whether the walk has ended."""
        return self._nodes == [] and not self._pages

    def step(self, now: int | None = None) -> MendReport:
        """Continue where the last step ended, by some thousand keys or jobs at most. After EngineUnavailable begin a
        new walk: cursors belong to one server."""
        at = arguments.encode_whole("now", now)
        calls = self._check_places(at) if self._pages else self._check_jobs(at)
        found = MendReport()
        for call, reply in zip(calls, self._caller.many(calls), strict=True):
            found += self._read_reply(call, reply)
        return found

    def _check_places(self, now: str) -> list[Call]:
        pages, self._pages = self._pages[:PAGES], self._pages[PAGES:]
        return [("sb_mend", root, (now, queue, place, cursor)) for root, queue, place, cursor in pages]

    def _check_jobs(self, now: str) -> list[Call]:
        """Build the calls for the jobs among the next keys; places among them are left to later steps."""
        jobs: dict[str, list[str]] = {}
        for name in self._scan():
            if (found := self._keys.job_or_place(name)) is None:
                continue
            root, job, queue, place = found
            if job:
                jobs.setdefault(root, []).append(job)
            else:
                self._pages.append((root, queue, place, "0"))
        return [
            ("sb_mend", root, (now, "", "", *ids[start : start + JOBS]))
            for root, ids in jobs.items()
            for start in range(0, len(ids), JOBS)
        ]

    def _scan(self) -> Iterable[str]:
        try:
            if self._nodes is None:
                self._nodes = routing.list_nodes(self._caller.client)
            if not self._nodes:
                return []
            self._cursor, names = self._nodes[0].scan(self._cursor, match=self._pattern, count=KEYS)
        except FAILURES as error:
            translate(error)
        if self._cursor == 0:
            self._nodes = self._nodes[1:]
        return dict.fromkeys(map(str, names))

    def _read_reply(self, call: Call, reply: Any) -> MendReport:
        _, root, words = call
        if isinstance(reply, Exception):
            try:
                translate(reply)
            except EngineFault as error:
                return MendReport(faults=(f"{root}: {error}",))
        if reply[0] != Status.OK:
            raise EngineFault(f"mending {root}: {reply[1]}")
        more, numbers, why = str(reply[1]), reply[2 : 2 + len(KINDS)], reply[2 + len(KINDS) :]
        if more != "0":
            self._pages.append((root, words[1], words[2], more))
        counted: dict[str, Any] = dict(zip(KINDS, map(int, numbers), strict=True))
        return MendReport(**counted, faults=tuple(f"{root}: {each}" for each in why))
