"""One job: where it is, its input, its attempts, and what operators do to it. Actions need ``operate`` and a reason."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared.addresses import job_url
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import View, require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from machines.audit.redaction import strict_redactor
from machines.engine import Instance, Job, errors
from machines.jobs import actions as jobs
from machines.jobs import queries as job_queries
from machines.jobs.errors import NotMoved
from machines.people.actor import Actor
from machines.people.permissions import allows

from . import presenters as acts
from .presenters import FailedAction, find_job_page, read_figures


@require("view")
def show(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return job_page(request, machine, id)


def job_page(request: HttpRequest, machine: str, id: str, turned: FailedAction | None = None) -> HttpResponse:
    """Render the page as of now. ``turned``: an action that just failed."""
    engine = redacted_engine(request)
    try:
        job = engine.job(machine, id)
    except errors.LookupFailed as error:
        if error.code != GONE:
            raise
        return _answer_gone(request, engine, machine, id)
    context = {
        "section": "queues",
        "job": job,
        "timeline": sorted(list_timeline(job), key=lambda entry: entry.at),
        "earlier": len(job.log) >= MAX_ATTEMPTS,
        "turned": turned,
        "batch": job_queries.get_batch(Actor.of(request), job),
        "output": job_queries.get_output(Actor.of(request), job),
        "actions": acts.list_job_actions(job) if allows(request.user, "operate", machine) else [],
    }
    return render_page(request, "signalbox/jobs/job.html", context, status=turned.status if turned else 200)


GONE = "SB423"


def _answer_gone(request: HttpRequest, engine: RedactedEngine, machine: str, id: str) -> HttpResponse:
    """Answer 410 for a job that is gone, 404 for an unknown one. ``?of=`` names the instance it belonged to."""
    was = job_queries.has_existed(Actor.of(request), machine, id)
    instance = _find_instance(engine, machine, request.GET.get("of", "")) if was else None
    context = {"section": "queues", "machine": machine, "id": id, "was": was, "instance": instance}
    return render_page(request, "signalbox/jobs/job_gone.html", context, status=410 if was else 404)


def _find_instance(engine: RedactedEngine, machine: str, id: str) -> Instance | None:
    try:
        return engine.get(machine, id) if id else None
    except (errors.LookupFailed, errors.BadInput):
        return None


SUCCESS = {"redrive": "retried", "move": "is ready to run", "withdraw": "withdrawn"}


def _make_view(name: str) -> View:
    @answer_form("job", "operate", f"job.{name}", target="id")
    def view(request: HttpRequest, machine: str, id: str) -> HttpResponse:
        return _run_action(request, machine, id, name)

    return view


def _run_action(request: HttpRequest, machine: str, id: str, name: str) -> HttpResponse:
    """Check the form, run the action and return; a failure is shown on the job's page."""
    try:
        job = job_queries.get(Actor.of(request), machine, id, redactor=strict_redactor(machine))
    except errors.LookupFailed:
        return job_page(request, machine, id)
    act = acts.make_job_action(job, name, request.POST)
    if not act.form.is_valid():
        return job_page(request, machine, id, _fail_form(job, act))
    try:
        given = act.form.cleaned_data
        force = {"force": True} if given.get("confirm") else {}
        getattr(jobs, name)(Actor.of(request), machine, job, reason=given["reason"], **force)
    except errors.LookupFailed:  # it ended meanwhile
        return job_page(request, machine, id)
    except errors.BadInput as error:
        return job_page(request, machine, id, acts.make_failure(act, error))
    except errors.JobHandled as error:  # meanwhile: the page now asks for a confirmation
        return job_page(
            request, machine, id, FailedAction(409, "Not done: the instance has moved on", error.message, error.code)
        )
    except NotMoved as error:
        return job_page(request, machine, id, FailedAction(409, "Not done", error.message, error.code))
    messages.success(request, f"Job {id} {SUCCESS[name]}")
    return redirect(_link_back(request, job, name))


def _fail_form(job: Job, act: acts.Action) -> FailedAction:
    """Describe an invalid form; one that lacks only the confirmation asks for it."""
    if list(act.form.errors) != ["confirm"]:
        return acts.make_failure(act)
    error = errors.JobHandled(job.machine, job.id)
    message = "The instance moved on without this job, and will not receive its result. Confirm to run it again."
    return FailedAction(409, "Confirm: the instance has moved on", message, error.code, act)


def _link_back(request: HttpRequest, job: Job, name: str) -> str:
    """Return the address of the row or instance it came from; else of the job, or of the queue if the job is gone."""
    if request.POST.get("from") == "instance" and job.instance:
        return reverse("signalbox:instance", args=[job.machine, job.instance])
    if "place" in request.POST:
        spot = find_job_page(read_figures(Actor.of(request), job.machine, job.queue), request.POST)
        if spot:
            return spot.url()
    return reverse("signalbox:queue", args=[job.machine, job.queue]) if name == "withdraw" else job_url(job)


ACTION_VIEWS = {name: _make_view(name) for name in SUCCESS}


MAX_ATTEMPTS = 10  # ended attempts that the engine keeps of a job
ENDED = {"lost": "failed: lease expired", "timeout": "failed: timeout"}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Holds one line of the timeline. ``ahead``: it is still to come; ``took``: ms, of an attempt that ended."""

    at: int
    what: str
    bad: bool = False
    ahead: bool = False
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
        yield TimelineEntry(job.lease_until, "lease expires unless renewed", ahead=True)
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
        yield TimelineEntry(job.handled, "moved on", note=_describe_instance(job))


def _describe_instance(job: Job) -> str:
    return "the instance was gone" if job.instance_is == "gone" else "the instance no longer waited for it"


def _describe_error(ended: dict) -> str:
    return ": ".join(word for word in (ended.get("kind", ""), ended.get("error", "")) if word)
