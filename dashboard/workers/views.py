"""The page of workers: what each runs, how it is, and the orders it can be given."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse

from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.alarms.workers import SILENT_AFTER
from machines.catalog.queries import count_missing
from machines.instances.forms import REASON_LIMIT
from machines.jobs import worker_actions as services
from machines.people.actor import Actor
from machines.people.permissions import allows
from machines.worker.duties.exclusive_duties import TTL

from .forms import ORDERS, OrderForm
from .presenters import list_duties, list_pending_writes, make_worker


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    return _render_page(request)


def _name_action(request: HttpRequest) -> str:
    order = request.POST.get("order", "")
    return f"worker.{order if order in ORDERS else 'quiet'}"


@answer_form("workers", "operate", _name_action, takes=(), globally=True, target="worker")
def direct(request: HttpRequest, worker: str) -> str | HttpResponse:
    form = OrderForm(request.POST)
    if not form.is_valid():
        return _render_page(request, worker, form)
    order = form.cleaned_data["order"]
    services.direct(Actor.of(request), worker, **form.cleaned_data)
    return f"{worker} {ORDERS[order][1]}. Takes effect with its next heartbeat."


def _render_page(request: HttpRequest, submitted: str = "", form: OrderForm | None = None) -> HttpResponse:
    """Render the page as of now. ``form``: an order for ``submitted`` that was not accepted."""
    alive = services.list_workers(Actor.of(request))
    rows = sorted(alive, key=lambda row: (row.host, row.pid))
    now = services.read_clock()
    workers = [make_worker(row, now) for row in rows]
    if form is not None:
        if all(row.id != submitted for row in rows):
            raise Http404(f"Worker {submitted} not found. It may have stopped.")
        workers = [replace(worker, form=form) if worker.row.id == submitted else worker for worker in workers]
    context = {
        "now_ms": now,
        "workers": workers,
        "missing": count_missing(alive.missing, of=False),
        "in_hand": sum(row.in_hand for row in rows),
        "silent_after": SILENT_AFTER,
        "may_direct": allows(request.user, "operate"),
        "reason_limit": REASON_LIMIT,
        "kept": list_duties(rows, now),
        "handed_on_after": TTL,
        "unwritten": list_pending_writes(),
    }
    return render_page(request, "signalbox/workers/workers.html", context, status=400 if form is not None else 200)
