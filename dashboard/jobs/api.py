"""One job: its input, its attempts, and the actions of operators."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Acting, Data, Ms, Out
from machines.engine import Job
from machines.jobs import actions as jobs
from machines.jobs import queries as job_queries

group = Group("jobs", "Single jobs.")
JOB = "/machines/{name:machine}/jobs/{job:job}"


class JobOut(
    Out.derive(
        Job,
        "id machine queue src instance invoke input attempt attempts priority group weight unique worker error "
        "kind trace lease timeout backoff progress",
        times="created due started taken finished lease_until deadline",
    )
):
    """Times are 0 where there was no such moment. The token that fences its end is never shown."""

    place: str = Field(description="ready, leased, delayed, dead, or handled: dead, and its instance moved on")
    instance_is: str = Field(
        "", description="present, finished, gone, later (the id belongs to a later instance), elsewhere; empty for none"
    )
    instance_state: list[str] = Field([], description="its active states, of a present or finished instance")
    data: Data
    handled: Ms = Field(0, description="when its instance no longer waited for the dead job")
    log: list[dict[str, Any]] = Field(description="the last ten attempts that ended, oldest first")


class Retrying(Acting):
    force: bool = Field(False, description="true: also a handled job, for whose result no instance waits")


class Done(Out):
    job: str
    done: str = Field(description="redriven, moved or withdrawn")


@group.get(JOB, right="view", answers=JobOut)
def get_job(request: HttpRequest, machine: str, job: str) -> Job:
    """Get a job.

    Return the job. Finished and withdrawn jobs are gone: 404.
    """
    return job_queries.get(actor_of(request), machine, job)


@group.post(f"{JOB}/redrive", right="operate", answers=Done)
def redrive_job(request: HttpRequest, machine: str, job: str, body: Retrying) -> dict[str, str]:
    """Retry a dead job.

    Make the job ready again. A handled job answers 409 with SB443 unless `force` is true.
    """
    jobs.redrive(actor_of(request), machine, job, reason=body.reason, force=body.force)
    return {"job": job, "done": "redriven"}


@group.post(f"{JOB}/move", right="operate", answers=Done)
def run_job_now(request: HttpRequest, machine: str, job: str, body: Acting) -> dict[str, str]:
    """Run a delayed job now."""
    jobs.move(actor_of(request), machine, job, reason=body.reason)
    return {"job": job, "done": "moved"}


@group.post(f"{JOB}/withdraw", right="operate", answers=Done)
def withdraw_job(request: HttpRequest, machine: str, job: str, body: Acting) -> dict[str, str]:
    """Withdraw a job.

    Withdraw the job. Its instance gets `error.invoke` with the kind Withdrawn.
    """
    jobs.withdraw(actor_of(request), machine, job, reason=body.reason)
    return {"job": job, "done": "withdrawn"}
