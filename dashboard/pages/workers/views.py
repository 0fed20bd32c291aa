"""Who works: what each worker holds, how it is, and the orders it can be given."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.pages.shared.addresses import page_of
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared.access import allows, require, scope_of
from dashboard.shared.rendering import page
from machines.connections import get_engine, get_pattern
from machines.engine import WorkerInfo
from machines.forms import REASON_LIMIT
from machines.management.maintenance import DUTIES
from machines.patterns import LentBatch, Locks, Stats
from machines.services import Actor
from machines.services import workers as services
from machines.worker.maintenance import buffer_flush
from machines.worker.maintenance.scheduler import TTL, read_lock_holders

LATE = 300_000  # ms that something may wait for the database
PATIENT = 5  # times that a batch is taken before somebody should look
SILENT_AFTER = 11_000  # ms without a heartbeat: two were missed, and after the third the row is gone

ORDERS = {
    "quiet": ("Quiet", "will take no more jobs and finish the running ones"),
    "work": ("Resume", "will take jobs again"),
    "stop": ("Stop", "will stop, finish what it can before its deadline and return the rest"),
}
"""order -> its button, and what a page says once it is given."""

OPEN_TO = {"working": ("quiet", "stop"), "quiet": ("work", "stop"), "stopping": ()}
"""status -> the orders that mean something to it."""


class OrderForm(forms.Form):
    order = forms.ChoiceField(choices=[(order, label) for order, (label, _) in ORDERS.items()])
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the audit."}
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A job in hand. ``url`` and ``instance_url`` are "" where there is no such page."""

    id: str
    src: str
    machine: str
    queue: str
    instance: str
    attempt: int
    since: int
    url: str
    instance_url: str


@dataclass(frozen=True, slots=True)
class Worker:
    """``jobs``: those in hand that its row names; ``more``: how many it does not. ``form``: an order not accepted."""

    row: WorkerInfo
    alive: bool
    jobs: list[Held]
    more: int
    orders: list[tuple[str, str, bool]]
    form: OrderForm | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A duty of the house. ``worker``: who has it, "" for nobody; ``alive``: whether that one beat lately.

    ``since`` and ``until``: ms, the latter moving on as long as its worker lives.
    """

    duty: str
    told: str
    worker: str = ""
    fence: int = 0
    since: int = 0
    until: int = 0
    alive: bool = False


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What waits for the database. ``oldest``: ms; ``stuck``: batches that were claimed again and again."""

    name: str
    stats: Stats
    oldest: float
    late: bool
    stuck: list[LentBatch]


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _action(request: HttpRequest) -> str:
    order = request.POST.get("order", "")
    return f"worker.{order if order in ORDERS else 'quiet'}"


@lever("operate", _action, globally=True, target="worker")
def direct(request: HttpRequest, worker: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("workers")
    form = OrderForm(request.POST)
    if not form.is_valid():
        return _page(request, worker, form)
    order, reason = form.cleaned_data["order"], form.cleaned_data["reason"]
    services.direct(Actor.of(request), worker, order, reason=reason)
    messages.success(request, f"{worker} {ORDERS[order][1]}. Takes effect with its next heartbeat.")
    return redirect("workers")


def is_alive(row: WorkerInfo, now: float | None = None) -> bool:
    """Whether its last heartbeat is recent at ``now`` (ms); a silent worker may be stuck, cut off or gone."""
    return (now if now is not None else time.time() * 1000) - row.seen < SILENT_AFTER


def _now() -> int:
    """ms by the clock of Redis, as rows have it."""
    told = get_engine().client.time()
    seconds, micros = next(iter(told.values())) if isinstance(told, dict) else told  # a cluster answers for each node
    return int(seconds) * 1000 + int(micros) // 1000


def kept(rows: Iterable[WorkerInfo], now: int) -> list[Kept]:
    """Every duty of which one worker at a time has charge, at ``now`` (ms by the clock of Redis)."""
    living = {row.id for row in rows if is_alive(row, now)}
    return [
        Kept(duty, DUTIES[duty])
        if holder is None
        else Kept(
            duty, DUTIES[duty], holder.owner, holder.fence, holder.since, now + int((holder.left or 0) * 1000),
            holder.owner in living,
        )
        for duty, holder in read_lock_holders(get_pattern(Locks), DUTIES).items()
    ]  # fmt: skip


def unwritten() -> list[Unwritten]:
    found = []
    for name, stats in buffer_flush.waiting().items():
        oldest, stuck = stats.oldest * 1000, [lent for lent in stats.lent if lent.takes > PATIENT]
        found.append(Unwritten(name, stats, oldest, oldest > LATE, stuck))
    return found


def _page(request: HttpRequest, tried: str = "", form: OrderForm | None = None) -> HttpResponse:
    """The page as it is now; ``form`` is an order for ``tried`` that was not accepted."""
    scope = scope_of(request.user)
    rows = [row.only(scope) for row in sorted(get_engine().workers(), key=lambda row: (row.host, row.pid))]
    now = _now()
    workers = [card(row, now) for row in rows]
    if form is not None:
        if all(row.id != tried for row in rows):
            raise Http404(f"Worker {tried} not found. It may have stopped.")
        workers = [replace(worker, form=form) if worker.row.id == tried else worker for worker in workers]
    context = {
        "section": "workers",
        "now_ms": now,
        "workers": workers,
        "in_hand": sum(row.in_hand for row in rows),
        "silent_after": SILENT_AFTER,
        "may_direct": allows(request.user, "operate"),
        "reason_limit": REASON_LIMIT,
        "kept": kept(rows, now),
        "handed_on_after": TTL,
        "unwritten": unwritten(),
    }
    return page(request, "pages/workers.html", context, status=400 if form is not None else 200)


def card(row: WorkerInfo, now: float) -> Worker:
    """A worker as the page shows it at ``now`` (ms)."""
    jobs = [_held(job) for job in row.holding if isinstance(job, dict)]
    sensible = OPEN_TO.get(row.status, tuple(ORDERS))
    orders = [(order, label, order in sensible) for order, (label, _) in ORDERS.items()]
    return Worker(row, is_alive(row, now), jobs, max(0, row.in_hand - len(jobs)), orders)


def _held(job: dict[str, Any]) -> Held:
    def text(name: str) -> str:
        return str(job.get(name) or "")

    machine, instance = text("machine"), text("instance")
    return Held(
        text("id"), text("src"), machine, text("queue"), instance,
        int(job.get("attempt") or 0), int(job.get("since") or 0),
        url=page_of("job", machine, text("id")),
        instance_url=page_of("instance", machine, instance) if instance else "",
    )  # fmt: skip
