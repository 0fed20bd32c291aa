"""What operators do to one job: re-drive, run it now, withdraw. All need ``operate`` and a reason."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.access import require
from dashboard.pages import acts
from dashboard.pages.acts import Turned
from dashboard.pages.addresses import job_url
from dashboard.pages.errors import NOT_MOVED
from dashboard.pages.jobs import job_page
from dashboard.pages.queues import figures_of, spot_of
from machines.auditing import REFUSED, audited
from machines.connections import get_engine
from machines.engine import Job, errors

UNMOVED = {
    "redrive": "It is not dead any more, or another job with its unique key is open.",
    "move": "It is not delayed any more.",
}
TOLD = {"redrive": "is ready again", "move": "is ready now", "withdraw": "is withdrawn"}


@require("operate")
def redrive(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return _do(request, machine, id, "redrive")


@require("operate")
def move(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return _do(request, machine, id, "move")


@require("operate")
def withdraw(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return _do(request, machine, id, "withdraw")


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
        moved = _move(request, job, name, act.form.cleaned_data["reason"])
    except errors.LookupFailed:  # it ended meanwhile
        return job_page(request, machine, id)
    except errors.BadInput as error:
        return job_page(request, machine, id, acts.mistake(act, error))
    if not moved:
        return job_page(request, machine, id, Turned(409, "Not moved", UNMOVED[name], NOT_MOVED))
    messages.success(request, f"Job {id} {TOLD[name]}")
    return redirect(_back(request, job, name))


def _move(request: HttpRequest, job: Job, name: str, reason: str) -> bool:
    engine, who = get_engine(), {"actor": request.user.get_username(), "reason": reason}
    about = {"machine": job.machine, "instance": job.instance, "queue": job.queue, "target": job.id}
    with audited(request, f"job.{name}", **about, reason=reason) as deed:
        deed.note(place=job.place, src=job.src)
        if name == "withdraw":
            engine.withdraw(job.machine, job, **who)
            return True
        move = engine.redrive if name == "redrive" else engine.move_now
        moved = move(job.machine, job.queue, job, **who) > 0
        if not moved:
            deed.outcome = REFUSED
            deed.note(error=UNMOVED[name], code=NOT_MOVED)
        return moved


def _back(request: HttpRequest, job: Job, name: str) -> str:
    """To the row it stood in; else to the job, or to its queue when it is gone."""
    if "place" in request.POST:
        spot = spot_of(figures_of(job.machine, job.queue), request.POST)
        if spot:
            return spot.url()
    return reverse("queue", args=[job.machine, job.queue]) if name == "withdraw" else job_url(job)
