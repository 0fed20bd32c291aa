"""Presents the timeline of a job: every attempt so far, and what comes next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from machines.engine import Job

MAX_ATTEMPTS = 10  # ended attempts that the engine keeps of a job
ENDED = {"lost": "failed: lease expired", "timeout": "failed: timeout"}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Holds one line of the timeline. ``ahead``: it is still to come; ``took``: ms, of an attempt that ended."""

    at: int
    what: str
    bad: bool = False
    ahead: bool = False
    lease: bool = False
    who: str = ""
    took: int | None = None
    note: str = ""


def list_timeline(job: Job) -> Iterator[TimelineEntry]:
    yield TimelineEntry(job.created, "enqueued")
    for ended in job.log:
        what, why = (
            f"attempt {ended['attempt']} {ENDED.get(ended['outcome'], ended['outcome'])}",
            _describe_error(ended),
        )
        took = ended["ended"] - ended["taken"] if ended.get("taken") else None
        bad = ended["outcome"] != "handed back"
        yield TimelineEntry(ended["ended"], what, bad=bad, who=ended.get("worker", ""), took=took, note=why)
    if job.place == "leased":
        yield TimelineEntry(job.taken, f"attempt {job.attempt} started", who=job.worker)
        yield TimelineEntry(job.lease_until, "lease expires unless renewed", ahead=True, lease=True)
        if job.deadline:
            yield TimelineEntry(job.deadline, "attempt times out", ahead=True)
    elif job.place == "delayed":
        yield TimelineEntry(job.due, f"attempt {job.attempt + 1} starts", ahead=True)
    elif job.place == "ready" and job.due > job.created:
        yield TimelineEntry(job.due, "ready")
    elif job.place == "dead":
        yield TimelineEntry(job.finished, "dead", bad=True, note="needs attention")
    elif job.place == "handled":
        yield TimelineEntry(job.finished, "dead", bad=True)
        yield TimelineEntry(job.handled, "handled", note=_describe_instance(job))


def _describe_instance(job: Job) -> str:
    return "the instance was gone" if job.instance_is == "gone" else "the instance no longer waited for it"


def _describe_error(ended: dict) -> str:
    return ": ".join(word for word in (ended.get("kind", ""), ended.get("error", "")) if word)
