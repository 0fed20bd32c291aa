"""Machines whose instances are moved by the ends of jobs, and many instances of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from machines.engine import Engine
from machines.engine.keys import choose_partition

BATCH = 1000
NAME = "line"


def line(
    *sources: str,
    lease: int = 500,
    attempts: int = 50,
    backoff: int = 10,
    id: str = NAME,
    unique: bool = False,
    limited: int = 0,
    **top: Any,
) -> dict[str, Any]:
    """One job after the other, then ``done``; a job that comes to nothing leads to ``failed``. Times in ms.

    ``moved`` counts the jobs that moved the instance. ``limited``: jobs at a time of each group, which are those of
    ids of one length.
    """
    names = [f"step{number}" for number in range(len(sources))]
    states: dict[str, Any] = {"done": {}, "failed": {}}
    for name, source, then in zip(names, sources, [*names[1:], "done"], strict=True):
        states[name] = {
            "invoke": {
                "src": source,
                "queue": "jobs",
                "retry": {"attempts": attempts, "backoff": f"{backoff}ms", "jitter": False},
                "lease": f"{lease}ms",
                "onDone": {"target": then, "actions": {"set": {"moved": "moved + 1"}}},
                "onError": {"target": "failed", "actions": {"set": {"why": "event.kind"}}},
            }
            | ({"unique": "instance.id"} if unique else {})
            | ({"group": "len(instance.id)"} if limited else {})
        }
    queues = {"queues": {"jobs": {"groups": {"concurrency": limited}}}} if limited else {}
    return {"id": id, "initial": names[0], "context": {"moved": 0, "why": ""}, "states": states} | queues | top


def begin(engine: Engine, ids: Iterable[str], machine: str = NAME) -> None:
    """Many instances, in few round trips."""
    waiting = list(ids)
    engine.counts(machine)  # the library is loaded
    partitions = int(engine.client.hget(engine.keys.machines, machine))
    for start in range(0, len(waiting), BATCH):
        pipeline = engine.client.pipeline(transaction=False)
        for id in waiting[start : start + BATCH]:
            root = engine.keys.partition(machine, choose_partition(id, partitions)).root
            pipeline.fcall("sb_create", 1, root, id)
        refused = [reply for reply in pipeline.execute() if reply[0] != "OK"]
        assert not refused, refused[:3]
