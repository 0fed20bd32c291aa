"""What operators do to a queue: pause, resume, limits, purge, re-drive. All need ``operate`` and a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.access import require
from dashboard.pages import acts
from dashboard.pages.acts import Act, QueueActs, Turned
from dashboard.pages.depths import Figures
from dashboard.pages.queues import figures_of, queue_page, spot_of
from machines.auditing import Deed, audited
from machines.connections import get_engine
from machines.engine import Engine, errors

Who = dict[str, str]  # actor and reason
Done = Callable[[Engine, Figures, dict[str, Any], Who, Deed], str]


@require("operate")
def pause(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "pause", "queue.pause", _pause)


@require("operate")
def resume(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "resume", "queue.resume", _resume)


@require("operate")
def limit(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "limit", "queue.limit", _limit)


@require("operate")
def purge(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "purge", "queue.purge", _purge)


@require("operate")
def redrive(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "redrive", "queue.redrive", _redrive)


@require("operate")
def move(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return _do(request, machine, queue, "move", "job.move", _move)


def _do(request: HttpRequest, machine: str, queue: str, name: str, action: str, done: Done) -> HttpResponse:
    """Checks the form, does it, and goes back; what was turned down stands on the queue's page, for another go."""
    if request.method != "POST":
        return redirect("queue", machine, queue)
    figures = figures_of(machine, queue)
    act = _act(figures, name, request)
    if not act.form.is_valid():
        return queue_page(request, figures, request.POST, acts.mistake(act))
    given = act.form.cleaned_data
    who = {"actor": request.user.get_username(), "reason": given["reason"]}
    try:
        with audited(request, action, machine=machine, queue=queue, reason=given["reason"]) as deed:
            told = done(get_engine(), figures, given, who, deed)
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
    message = f"You typed {error.expected}; {now}. Nothing was taken away."
    turned = Turned(409, "Not purged: the number is another one", message, error.code, act if error.actual else None)
    return queue_page(request, figures, request.POST, turned)


def _back(request: HttpRequest, figures: Figures) -> HttpResponse:
    if request.POST.get("back") == "queues":
        return redirect("queues")
    spot = spot_of(figures, request.POST)
    return redirect(spot.url() if spot else "queues")


def _pause(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    engine.pause(figures.machine, figures.queue, **who)
    return f"{figures.queue} is paused: no job of it is handed out until it is resumed"


def _resume(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    engine.resume_queue(figures.machine, figures.queue, **who)
    return f"{figures.queue} goes on"


def _limit(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    before = figures.stats
    wanted = {"concurrency": given["concurrency"], "rate": given["rate"]}
    deed.note(was={"concurrency": before.concurrency, "rate": before.rate}, given=wanted)
    engine.limit(figures.machine, figures.queue, **wanted, **who)
    after = engine.stats(figures.machine)[figures.queue]
    return f"{figures.queue}: {_limits(after.concurrency, after.rate)}"


def _limits(concurrency: int | None, rate: str) -> str:
    held = [f"{concurrency} jobs at a time"] if concurrency is not None else []
    held += [f"{rate} at most"] if rate else []
    return " and ".join(held) or "no limit"


def _purge(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    place, expect = given["place"], given["expect"]
    deed.note(place=place, expected=expect)
    count = engine.purge(figures.machine, figures.queue, place=place, expect=expect, **who)
    deed.note(count=count)
    return f"{count} {place} {_job(count)} of {figures.queue} {'is' if count == 1 else 'are'} gone for good"


def _redrive(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    count = engine.redrive(figures.machine, figures.queue, **who)
    deed.note(count=count)
    return f"{count} dead {_jobs(count)} ready again"


def _move(engine: Engine, figures: Figures, given: dict[str, Any], who: Who, deed: Deed) -> str:
    count = engine.move_now(figures.machine, figures.queue, **who)
    deed.note(count=count)
    return f"{count} delayed {_jobs(count)} ready now"


def _job(count: int) -> str:
    return "job" if count == 1 else "jobs"


def _jobs(count: int) -> str:
    return "job is" if count == 1 else "jobs are"
