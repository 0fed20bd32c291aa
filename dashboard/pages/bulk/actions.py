"""What operators do to a bulk: run, pause, resume, stop, retry, its pace, again for those that failed; and its CSV."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from dashboard.pages.audit.csv_export import cell, streamed, writer
from dashboard.pages.shared.approval_requests import redirect_to_request
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared.access import View, require
from machines.bulk import Bulk, NotNow, Row
from machines.bulk.order import MAX_REASON
from machines.engine import errors
from machines.services import Actor, ApprovalNeeded, approvals
from machines.services import bulks as services

from .forms import RateForm
from .views import bulk_page, id_of, seen

TOLD = {
    "run": "Started",
    "pause": "Paused: instances being processed now are still finished",
    "resume": "Resumed",
    "retry": "Retrying from the failure",
    "stop": "Stopped",
}
COLUMNS = ("instance", "state", "version", "verdict", "verdict_why", "outcome", "outcome_why")


def _view(name: str, action: str) -> View:
    @lever("operate", action, target="id")
    def view(request: HttpRequest, id: str) -> HttpResponse:
        return _do(request, id, name)

    return view


def _do(request: HttpRequest, id: str, name: str) -> HttpResponse:
    """Does it, and goes back to the page; what is not possible now is said there."""
    if request.method != "POST":
        return redirect("bulk", id)
    actor = Actor.of(request)
    try:
        getattr(services, name)(actor, id)
    except ApprovalNeeded as needed:
        return redirect_to_request(request, approvals.ask(actor, needed))
    except (NotNow, errors.Suspended) as error:
        messages.error(request, f"Not done: {error.message} ({error.code})")
    else:
        messages.success(request, TOLD[name])
    return redirect("bulk", id)


@lever("operate", "bulk.rate", target="id")
def rate(request: HttpRequest, id: str) -> HttpResponse:
    """How many a second from now on."""
    if request.method != "POST":
        return redirect("bulk", id)
    form = RateForm(request.POST)
    if not form.is_valid():
        return bulk_page(request, id, slip=form.errors["rate"][0], status=400)
    try:
        services.rate(Actor.of(request), id, form.cleaned_data["rate"] or 0)
    except NotNow as error:
        messages.error(request, f"Not done: {error.message} ({error.code})")
    else:
        messages.success(request, "Rate limit updated; it applies from the next batch on")
    return redirect("bulk", id)


@lever("operate", "bulk.start", target="id")
def again(request: HttpRequest, id: str) -> HttpResponse:
    """A new bulk of the same kind with those that failed."""
    if request.method != "POST":
        return redirect("bulk", id)
    reason = request.POST.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        return bulk_page(request, id, mistake=f"Enter a reason of at most {MAX_REASON} characters.", status=400)
    made = services.again(Actor.of(request), id, reason=reason, new=id_of(request))
    return redirect("bulk", made.id)


@require("view")
def results(request: HttpRequest, id: str) -> HttpResponseBase:
    bulk, _, order = seen(request, id)  # one that is not there is a page that says so, not half a file
    return streamed(request, _chunks(Actor.of(request), bulk, order.machine), f"bulk-{id}.csv")


def _chunks(actor: Actor, bulk: Bulk, machine: str) -> Iterator[str]:
    write = writer()
    yield write(COLUMNS)
    for rows in bulk.pages():
        shown = services.shown(actor, machine, rows)
        yield "".join(write([cell(text) for text in _texts(row)]) for row in shown)


def _texts(row: Row) -> Iterator[str]:
    yield from (row.item.id, row.item.state, str(row.item.version))
    for note in (row.verdict, row.outcome):
        yield from (note.word, note.why) if note else ("", "")


run = _view("run", "bulk.run")
pause = _view("pause", "bulk.pause")
resume = _view("resume", "bulk.resume")
retry = _view("retry", "bulk.resume")
stop = _view("stop", "bulk.stop")
