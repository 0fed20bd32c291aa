"""Converts queues, workers and jobs to the values that pages receive. An absent value has no key: a null would cost
a whole snapshot.
"""

from __future__ import annotations

from typing import Any

from machines.engine.jobs.records import Job, QueueStats, WorkerInfo
from machines.people.permissions import Scope

COUNTERS = ("enqueued", "taken", "completed", "failed", "lost", "died", "withdrawn", "purged")
OF_JOB = ("queue", "src", "instance", "place", "attempt", "attempts", "worker", "lease_until", "deadline", "due")
OF_JOB += ("taken", "finished", "kind", "error")


def of_queue(stats: QueueStats) -> dict[str, Any]:
    value: dict[str, Any] = {**stats.depth, **{name: getattr(stats, name) for name in COUNTERS}}
    value["waits"] = {str(magnitude): count for magnitude, count in stats.waits.items()}
    value["runs"] = {str(magnitude): count for magnitude, count in stats.runs.items()}
    pause = stats.paused
    some = {
        "oldest": stats.oldest,
        "concurrency": stats.concurrency,
        "rate": stats.rate or None,
        "paused": pause and {"since": pause.since, "actor": pause.actor, "reason": pause.reason},
    }
    return value | {name: found for name, found in some.items() if found is not None}


def of_worker(row: WorkerInfo, scope: Scope) -> dict[str, Any]:
    """Return a worker's row, limited to the machines in scope."""
    return (row if scope.all else row.only(scope)).as_dict()


def of_job(job: Job) -> dict[str, Any]:
    value = {name: getattr(job, name) for name in OF_JOB}
    if job.progress:
        value["progress"] = {name: found for name, found in job.progress.items() if found is not None}
    return value
