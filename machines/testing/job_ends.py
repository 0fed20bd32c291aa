"""Finds one job by the name of its invoke or handler, and leases it, so that a test can say how it ends."""

from __future__ import annotations

from machines.engine import Engine, Job

from .report import list_jobs

WORKER = "test"
OPEN = ("ready", "delayed", "leased")
MOST_JOBS = 1000  # taken from a queue to find one of them


class Impossible(AssertionError):
    """A step cannot be done: there is no such job, or no such instance. The text says what there is."""


def list_open(engine: Engine, machine: str = "") -> list[Job]:
    """List the jobs that wait or run, of one machine or of all."""
    names = [machine] if machine else sorted(engine.machines())
    return [job for name in names for job in list_jobs(engine, name) if job.place in OPEN]


def take_job(engine: Engine, now: int, name: str, machine: str = "", owner: tuple[str, str] = ("", "")) -> Job:
    """Lease the one job of the invoke or handler ``name``. ``machine``: whose job it is, or any; ``owner``: machine and
    id of the instance whose job goes before those of others; an empty id is any. Raises Impossible."""
    wanted = _find(engine, name, machine, owner)
    if wanted.place == "delayed":
        raise Impossible(f"the job {wanted.src!r} becomes ready in {wanted.due - now} ms; let that time pass before")
    found = None
    for job in engine.take(wanted.machine, wanted.queue, WORKER, count=MOST_JOBS):
        if job.id == wanted.id:
            found = job
        else:
            engine.hand_back(job)
    if found is None:
        raise Impossible(f"the job {wanted.src!r} cannot be taken now: it runs, or its queue is held back")
    return found


def _find(engine: Engine, name: str, machine: str, owner: tuple[str, str]) -> Job:
    jobs = [job for job in list_open(engine, machine) if name in (job.invoke, job.src)]
    own = [job for job in jobs if job.machine == owner[0] and owner[1] in ("", job.instance)]
    found = own or jobs
    exact = [job for job in found if job.invoke == name] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        which = ", ".join(f"{job.invoke or job.src} of {job.machine} {job.instance}" for job in exact)
        raise Impossible(f"{len(exact)} jobs are named {name!r}: {which}; name the invoke, or whose job it is")
    waiting = ", ".join(
        job.src if job.machine == owner[0] else f"{job.src} of {job.machine}" for job in list_open(engine)
    )
    raise Impossible(f"no job {name!r} waits; jobs that wait: {waiting or 'none'}")
