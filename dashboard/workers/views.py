"""The page of workers: what each runs, how it is, and the orders it can be given."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.access import allows, require, scope_of
from dashboard.shared.missing_partitions import count_missing
from dashboard.shared.permissions import require_audited
from dashboard.shared.rendering import render_page
from machines.alarms.workers import SILENT_AFTER
from machines.connections import get_engine
from machines.engine.connection.calls import translate
from machines.engine.connection.client import FAILURES
from machines.engine.connection.routing import send_everywhere
from machines.instances.forms import REASON_LIMIT
from machines.jobs import worker_actions as services
from machines.people.actor import Actor
from machines.worker.duties.scheduler import TTL

from .forms import ORDERS, OrderForm
from .presenters import list_duties, list_pending_writes, make_worker


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _action(request: HttpRequest) -> str:
    order = request.POST.get("order", "")
    return f"worker.{order if order in ORDERS else 'quiet'}"


@require_audited("operate", _action, globally=True, target="worker")
def direct(request: HttpRequest, worker: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("signalbox:workers")
    form = OrderForm(request.POST)
    if not form.is_valid():
        return _page(request, worker, form)
    order, reason = form.cleaned_data["order"], form.cleaned_data["reason"]
    services.direct(Actor.of(request), worker, order, reason=reason)
    messages.success(request, f"{worker} {ORDERS[order][1]}. Takes effect with its next heartbeat.")
    return redirect("signalbox:workers")


def _now() -> int:
    """Return the ms by the clock of Redis, which the rows use."""
    try:
        seconds, micros = send_everywhere(get_engine().client, ("TIME",))[0]  # of a cluster, of any node
    except FAILURES as error:
        translate(error)
    return int(seconds) * 1000 + int(micros) // 1000


def _page(request: HttpRequest, tried: str = "", form: OrderForm | None = None) -> HttpResponse:
    """Render the page as of now. ``form``: an order for ``tried`` that was not accepted."""
    scope = scope_of(request.user)
    alive = get_engine().workers()
    rows = [row.only(scope) for row in sorted(alive, key=lambda row: (row.host, row.pid))]
    now = _now()
    workers = [make_worker(row, now) for row in rows]
    if form is not None:
        if all(row.id != tried for row in rows):
            raise Http404(f"Worker {tried} not found. It may have stopped.")
        workers = [replace(worker, form=form) if worker.row.id == tried else worker for worker in workers]
    context = {
        "section": "workers",
        "now_ms": now,
        "workers": workers,
        "missing": count_missing(getattr(alive, "missing", ()), of=False),
        "in_hand": sum(row.in_hand for row in rows),
        "silent_after": SILENT_AFTER,
        "may_direct": allows(request.user, "operate"),
        "reason_limit": REASON_LIMIT,
        "kept": list_duties(rows, now),
        "handed_on_after": TTL,
        "unwritten": list_pending_writes(),
    }
    return render_page(request, "signalbox/workers/workers.html", context, status=400 if form is not None else 200)
