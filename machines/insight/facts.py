"""Turns the history of an instance into rows of the store: one for each step, and one for the instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from machines.engine.definitions import outline

from .records import GAP

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
