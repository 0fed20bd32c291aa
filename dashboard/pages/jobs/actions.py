"""What operators do to one job: re-drive, run it now, withdraw. All need ``operate`` and a reason."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.pages.queues import presenters as acts
from dashboard.pages.queues.presenters import Turned
from dashboard.pages.queues.views import figures_of, spot_of
from dashboard.pages.shared.addresses import job_url
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared.access import View
from machines.connections import get_engine
from machines.engine import Job, errors
from machines.services import Actor, NotMoved, jobs

from .views import job_page

TOLD = {"redrive": "retried", "move": "is ready to run", "withdraw": "withdrawn"}


def _view(name: str) -> View:
    @lever("operate", f"job.{name}", target="id")
    def view(request: HttpRequest, machine: str, id: str) -> HttpResponse:
        return _do(request, machine, id, name)

    return view


def _do(request: HttpRequest, machine: str, id: str, name: str) -> HttpResponse:
    """Checks the form, does it, and goes back; what was turned down stands on the job's page."""
    if request.method != "POST":
        return redirect("job", machine, id)
    try:
        job = get_engine().job(machine, id)
    except errors.LookupFailed:
        return job_page(request, machine, id)
    act = acts.job_act(job, name, request.POST)
    if not act.form.is_valid():
        return job_page(request, machine, id, acts.mistake(act))
    try:
        getattr(jobs, name)(Actor.of(request), machine, job, reason=act.form.cleaned_data["reason"])
    except errors.LookupFailed:  # it ended meanwhile
        return job_page(request, machine, id)
    except errors.BadInput as error:
        return job_page(request, machine, id, acts.mistake(act, error))
    except NotMoved as error:
        return job_page(request, machine, id, Turned(409, "Not done", error.message, error.code))
    messages.success(request, f"Job {id} {TOLD[name]}")
    return redirect(_back(request, job, name))


def _back(request: HttpRequest, job: Job, name: str) -> str:
    """To the row it stood in; else to the job, or to its queue when it is gone."""
    if "place" in request.POST:
        spot = spot_of(figures_of(job.machine, job.queue), request.POST)
        if spot:
            return spot.url()
    return reverse("queue", args=[job.machine, job.queue]) if name == "withdraw" else job_url(job)


redrive = _view("redrive")
move = _view("move")
withdraw = _view("withdraw")
