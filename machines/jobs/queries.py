"""Reads jobs as one person may see them."""

from dataclasses import replace
from typing import Any

from machines.audit.redaction import Redactor
from machines.connections import get_engine
from machines.engine import EngineUnavailable, Job, JobBatch, LookupFailed
from machines.engine.storage import Storage
from machines.people.actor import Actor
from machines.people.redaction import redactor_of
from machines.worker.execution.output import read_output

UNLISTED: dict[str, Any] = {"input": None, "data": {}, "unique": "", "batch": "", "trace": "", "log": ()}


def get(actor: Actor, machine: str, job: str, *, redactor: Redactor | None = None) -> Job:
    """Return a job as the actor may see it. Raises Forbidden, LookupFailed."""
    actor.demand("view", machine)
    return (redactor or redactor_of(actor, machine)).job(get_engine().job(machine, job))


def get_output(actor: Actor, job: Job, *, redactor: Redactor | None = None) -> str:
    """Return the end of what the handler of a job logged and printed, as the actor may see it. Raises Forbidden."""
    actor.demand("view", job.machine)
    engine = get_engine()
    text = read_output(Storage(engine.client), engine.keys, job.root, job.id)
    return (redactor or redactor_of(actor, job.machine)).redact_text(text)


def get_batch(actor: Actor, job: Job) -> JobBatch | None:
    """Return the batch of a job; None where it has none, or that cannot be read. Raises Forbidden."""
    actor.demand("view", job.machine)
    try:
        return get_engine().get_batch_of(job) if job.batch else None
    except (LookupFailed, EngineUnavailable):
        return None


def find(
    actor: Actor,
    machine: str,
    queue: str,
    *,
    redactor: Redactor | None = None,
    brief: bool = False,
    **asked: Any,
) -> list[Job]:
    """Find jobs; ``asked``: as ``Engine.jobs`` takes it. ``brief``: without data, input and what else only the page of
    a job shows. Raises Forbidden."""
    actor.demand("view", machine)
    redactor = redactor or redactor_of(actor, machine)
    found = get_engine().jobs(machine, queue, **asked)
    return [redactor.job(replace(job, **UNLISTED) if brief else job) for job in found]


def has_existed(actor: Actor, machine: str, job: str) -> bool:
    """Tell whether the number of a job was ever given out. Jobs are numbered by partition. Raises Forbidden."""
    actor.demand("view", machine)
    engine = get_engine()
    partition, _, number = job.partition("-")
    count = engine.client.hget(engine.keys.partition(machine, int(partition)).meta, "jobs")
    return 0 < int(number) <= int(count or 0)
