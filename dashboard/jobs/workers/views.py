"""The page of workers: what each runs, how it is, and the orders it can be given."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse

from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.alarms.workers import is_alive
from machines.catalog.queries import count_missing
from machines.connections import get_pattern
from machines.duties import DUTIES
from machines.engine import WorkerInfo
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.jobs import worker_actions as services
from machines.patterns import Locks
from machines.people.actor import Actor
from machines.people.permissions import allows
from machines.worker.duties.exclusive_duties import TTL, read_lock_holders

ORDERS = {
    "quiet": ("Quiet", "will take no more jobs and finish the running ones"),
    "work": ("Resume", "will take jobs again"),
    "stop": ("Stop", "will stop, finish what it can before its deadline and return the rest"),
}
"""order -> its button, and what a page says once it is given."""
OPEN_TO = {
    "working": ("quiet", "stop"),
    "blocked": ("quiet", "stop"),
    "quiet": ("work", "stop"),
    "exhausted": ("stop",),
    "stopping": (),
}
"""status -> the orders that mean something to it."""


class OrderForm(PageForm):
    order = forms.ChoiceField(choices=[(order, label) for order, (label, _) in ORDERS.items()])
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the audit."}
    )


@dataclass(frozen=True, slots=True)
class Worker:
    """Holds a worker. ``jobs``: running jobs of its row; ``more``: how many others; ``form``: an order not accepted."""

    row: WorkerInfo
    alive: bool
    jobs: list[dict[str, Any]]
    more: int
    orders: list[tuple[str, str, bool]]
    form: OrderForm | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """Holds a background duty. ``worker``: its holder, "" for none; ``alive``: whether that worker sent a heartbeat
    lately.

    ``since`` and ``until``: ms; ``until`` moves on as long as the worker lives.
    """

    duty: str
    about: str
    worker: str = ""
    fence: int = 0
    since: int = 0
    until: int = 0
    alive: bool = False


def list_duties(rows: Iterable[WorkerInfo], now: int) -> list[Duty]:
    """List every duty that one worker at a time holds, at ``now`` (ms by the clock of Redis)."""
    living = {row.id for row in rows if is_alive(row, now)}
    return [
        Duty(duty, DUTIES[duty])
        if holder is None
        else Duty(
            duty, DUTIES[duty], holder.owner, holder.fence, holder.since, now + int((holder.left or 0) * 1000),
            holder.owner in living,
        )
        for duty, holder in read_lock_holders(get_pattern(Locks), DUTIES).items()
    ]  # fmt: skip


def make_worker(row: WorkerInfo, now: float) -> Worker:
    """Present a worker at ``now`` (ms)."""
    jobs = [job for job in row.holding if isinstance(job, dict)]
    sensible = OPEN_TO.get(row.status, tuple(ORDERS))
    orders = [(order, label, order in sensible) for order, (label, _) in ORDERS.items()]
    return Worker(row, is_alive(row, now), jobs, max(0, row.in_hand - len(jobs)), orders)


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
        "may_direct": allows(request.user, "operate"),
        "reason_limit": REASON_LIMIT,
        "kept": list_duties(rows, now),
        "handed_on_after": TTL,
    }
    return render_page(request, "signalbox/workers/workers.html", context, status=400 if form is not None else 200)
