"""Reads all machines, queues and workers together, for the overview and the metrics."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineUnavailable, LookupFailed, SignalboxError
from machines.engine.jobs import queue_operations
from machines.engine.jobs.records import QueueStats, WorkerInfo
from machines.engine.keys import get_machine
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Live


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of each machine and of its queues, by machine. ``faults``: machines that cannot be read, and why.
    ``missing``: roots of partitions that did not answer; the figures are those of the others."""

    lives: dict[str, Live] = field(default_factory=dict)
    queues: dict[str, dict[str, QueueStats]] = field(default_factory=dict)
    faults: dict[str, SignalboxError] = field(default_factory=dict)
    workers: list[WorkerInfo] = field(default_factory=list)
    missing: tuple[str, ...] = ()

    def only(self, names: Container[str]) -> Survey:
        """Return a copy with some machines only, and every worker."""
        return Survey(
            lives={name: live for name, live in self.lives.items() if name in names},
            queues={name: queues for name, queues in self.queues.items() if name in names},
            faults={name: fault for name, fault in self.faults.items() if name in names},
            workers=self.workers,
            missing=tuple(root for root in self.missing if get_machine(root) in names),
        )


def read_survey(caller: Caller, catalog: Catalog, workers: list[WorkerInfo]) -> Survey:
    """Read everything in one round trip once the machines are known. Raises EngineUnavailable."""
    found = Survey(workers=workers)
    roots: dict[str, list[str]] = {}
    for name in catalog.machines():
        try:
            roots[name] = [partition.root for partition in catalog.partitions(name)]
        except LookupFailed:  # deleted since the list was made
            continue
    calls = [call for each in roots.values() for root in each for call in _calls(root)]
    answers = iter(caller.many(calls))
    for name, each in roots.items():
        parts = [(next(answers), next(answers)) for _ in each]
        try:
            found.lives[name] = replies.merge_live([replies.read_live(name, _text(live)) for live, _ in parts])
            found.queues[name] = queue_operations.merge_stats([json.loads(_text(stats)) for _, stats in parts])
        except EngineUnavailable:
            raise
        except LookupError:
            catalog.forget(name)
            found.lives.pop(name, None)
        except SignalboxError as fault:
            found.lives.pop(name, None)
            found.faults[name] = fault
    return found


def _calls(root: str) -> list[tuple[str, str, Sequence[str]]]:
    return [("sb_live", root, ("",)), ("sb_stats", root, ())]


def _text(reply: Any) -> str:
    """Return the JSON of an answer. Raises LookupError where the machine no longer exists."""
    if isinstance(reply, Exception):
        translate(reply)
    if reply[0] != Status.OK:
        raise LookupError(reply[0])
    return str(reply[1])
