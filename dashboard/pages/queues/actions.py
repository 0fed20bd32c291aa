"""What operators do to a queue: pause, resume, limits, purge, re-drive. All need ``operate`` and a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.pages.shared.permission_gate import lever
from dashboard.shared.access import View
from dashboard.shared.queue_depths import Figures
from machines.engine import errors
from machines.services import Actor, queues

from . import presenters as acts
from .presenters import Act, QueueActs, Turned
from .views import figures_of, queue_page, spot_of

Told = Callable[[Actor, Figures, dict[str, Any]], str]
"""Does it, and says what came of it."""


def _view(name: str, action: str, done: Told) -> View:
    @lever("operate", action, queue="queue")
    def view(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
        return _do(request, machine, queue, name, done)

    return view


def _do(request: HttpRequest, machine: str, queue: str, name: str, done: Told) -> HttpResponse:
    """Checks the form, does it, and goes back; what was turned down stands on the queue's page, for another go."""
    if request.method != "POST":
        return redirect("queue", machine, queue)
    figures = figures_of(machine, queue)
    act = _act(figures, name, request)
    if not act.form.is_valid():
        return queue_page(request, figures, request.POST, acts.mistake(act))
    try:
        told = done(Actor.of(request), figures, act.form.cleaned_data)
    except errors.Miscounted as error:
        return _miscounted(request, machine, queue, error)
    except errors.BadInput as error:
        return queue_page(request, figures, request.POST, acts.mistake(act, error))
    messages.success(request, told)
    return _back(request, figures)


def _act(figures: Figures, name: str, request: HttpRequest, *, fresh: bool = False) -> Act:
    post = request.POST
    back = tuple((field, post[field]) for field in ("place", "page") if field in post)
    return QueueActs(figures, back, "again").make(name, post.get("place", ""), None if fresh else post)


def _miscounted(request: HttpRequest, machine: str, queue: str, error: errors.Miscounted) -> HttpResponse:
    """The queue as it is now, with a form that asks for the new count."""
    figures = figures_of(machine, queue)
    act = _act(figures, "purge", request, fresh=True)
    act.form.initial["reason"] = request.POST.get("reason", "")
    now = f"{error.actual} {error.place} {_jobs(error.actual)} there now"
    message = f"You entered {error.expected}; {now}. No jobs were purged."
    turned = Turned(
        409, "Not purged: the number of jobs has changed", message, error.code, act if error.actual else None
    )
    return queue_page(request, figures, request.POST, turned)


def _back(request: HttpRequest, figures: Figures) -> HttpResponse:
    if request.POST.get("back") == "queues":
        return redirect("queues")
    spot = spot_of(figures, request.POST)
    return redirect(spot.url() if spot else "queues")


def _pause(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    queues.pause(actor, of.machine, of.queue, reason=given["reason"])
    return f"{of.queue} paused: workers take no jobs from it until it is resumed"


def _resume(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    queues.resume(actor, of.machine, of.queue, reason=given["reason"])
    return f"{of.queue} resumed"


def _limit(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    after = queues.limit(actor, of.machine, of.queue, **given)
    return f"{of.queue}: {_limits(after.concurrency, after.rate)}"


def _limits(concurrency: int | None, rate: str) -> str:
    held = [f"{concurrency} concurrent jobs"] if concurrency is not None else []
    held += [f"max {rate}"] if rate else []
    return " and ".join(held) or "no limit"


def _purge(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    count = queues.purge(actor, of.machine, of.queue, **given)
    return f"{count} {given['place']} {_job(count)} of {of.queue} purged"


def _redrive(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    count = queues.redrive(actor, of.machine, of.queue, reason=given["reason"])
    return f"{count} dead {_jobs(count)} ready again"


def _move(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    count = queues.move(actor, of.machine, of.queue, reason=given["reason"])
    return f"{count} delayed {_jobs(count)} ready now"


def _job(count: int) -> str:
    return "job" if count == 1 else "jobs"


def _jobs(count: int) -> str:
    return "job is" if count == 1 else "jobs are"


pause = _view("pause", "queue.pause", _pause)
resume = _view("resume", "queue.resume", _resume)
limit = _view("limit", "queue.limit", _limit)
purge = _view("purge", "queue.purge", _purge)
redrive = _view("redrive", "queue.redrive", _redrive)
move = _view("move", "job.move", _move)
