"""One job: where it is, what it was given, every attempt so far, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from dashboard.pages.queues import presenters as acts
from dashboard.pages.queues.presenters import Turned
from dashboard.pages.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.access import allows, require
from dashboard.shared.rendering import page
from machines.connections import get_engine
from machines.engine import Instance, Job, errors

KEPT = 10  # ended attempts that the engine keeps of a job


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline. ``ahead``: it is still to come. ``took``: ms, of an attempt that ended."""

    at: int
    what: str
    bad: bool = False
    ahead: bool = False
    lease: bool = False
    who: str = ""
    took: int | None = None
    told: str = ""


@require("view")
def show(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return job_page(request, machine, id)


def job_page(request: HttpRequest, machine: str, id: str, turned: Turned | None = None) -> HttpResponse:
    """The page as it is now; ``turned`` says on top what was just not done."""
    engine = redacted_engine(request, machine)
    try:
        job = engine.job(machine, id)
    except errors.LookupFailed as error:
        if error.code != GONE:
            raise
        return _gone_page(request, engine, machine, id)
    context = {
        "section": "queues",
        "job": job,
        "moments": sorted(_moments(job), key=lambda moment: moment.at),
        "earlier": len(job.log) >= KEPT,
        "turned": turned,
        "levers": acts.of_job(job) if allows(request.user, "operate", machine) else [],
    }
    return page(request, "pages/job.html", context, status=turned.status if turned else 200)


def _moments(job: Job) -> Iterator[Moment]:
    yield Moment(job.created, "enqueued")
    for ended in job.log:
        what, why = f"attempt {ended['attempt']} {ENDED.get(ended['outcome'], ended['outcome'])}", _said(ended)
        took = ended["ended"] - ended["taken"] if ended.get("taken") else None
        bad = ended["outcome"] != "handed back"
        yield Moment(ended["ended"], what, bad=bad, who=ended.get("worker", ""), took=took, told=why)
    if job.place == "leased":
        yield Moment(job.taken, f"attempt {job.attempt} started", who=job.worker)
        yield Moment(job.lease_until, "lease expires unless renewed", ahead=True, lease=True)
        if job.deadline:
            yield Moment(job.deadline, "attempt times out", ahead=True)
    elif job.place == "delayed":
        yield Moment(job.due, f"attempt {job.attempt + 1} starts", ahead=True)
    elif job.place == "ready" and job.due > job.created:
        yield Moment(job.due, "ready")
    elif job.place == "dead":
        yield Moment(job.finished, "dead", bad=True, told="needs attention")


ENDED = {"lost": "failed: lease expired", "timeout": "failed: timeout"}


def _said(ended: dict) -> str:
    return ": ".join(word for word in (ended.get("kind", ""), ended.get("error", "")) if word)


GONE = "SB423"


def _gone_page(request: HttpRequest, engine: RedactedEngine, machine: str, id: str) -> HttpResponse:
    """410 for a job that was once; 404 for one that never was. ``?of=`` names the instance it belonged to."""
    was = _ever_was(machine, id)
    instance = _instance(engine, machine, request.GET.get("of", "")) if was else None
    context = {"section": "queues", "machine": machine, "id": id, "was": was, "instance": instance}
    return page(request, "pages/job_gone.html", context, status=410 if was else 404)


def _ever_was(machine: str, id: str) -> bool:
    """Jobs are numbered, partition by partition: one whose number was given out is finished or withdrawn."""
    engine = get_engine()
    partition, _, number = id.partition("-")
    count = engine.client.hget(engine.keys.partition(machine, int(partition)).meta, "jobs")
    return 0 < int(number) <= int(count or 0)


def _instance(engine: RedactedEngine, machine: str, id: str) -> Instance | None:
    try:
        return engine.get(machine, id) if id else None
    except (errors.LookupFailed, errors.BadInput):
        return None
