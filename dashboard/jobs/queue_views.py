"""Queues: the figures of all, the jobs of one, and what operators do to it. Actions need ``operate`` and a reason."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from pydantic import Field

from dashboard.shared import charts
from dashboard.shared.counts import Figures, name_topic
from dashboard.shared.errors.pages import bad_request
from dashboard.shared.form_views import answer_form, go_back
from dashboard.shared.list_pages import ListLinks, Terms
from dashboard.shared.permissions import View, require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.catalog import builtin_machines
from machines.catalog.queries import count_missing
from machines.engine import errors
from machines.insight.statistics.series import recent_times
from machines.jobs import groups
from machines.jobs import queue_actions as queues
from machines.jobs.groups import GroupFigures
from machines.jobs.search import find_jobs
from machines.people.actor import Actor
from machines.people.permissions import allows, scope_of

from . import presenters
from .presenters import SIZE, Action, FailedAction, JobPage, QueueActions, SearchPage, find_job_page, read_figures

PER_PAGE = 60  # queues of one page
OF_GROUP = ("pause", "resume", "limit")


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    operated = scope_of(request.user, "operate")
    survey = redacted_engine(request).survey()
    every = [Figures(name, stats) for name, queues in survey.queues.items() for stats in queues.values()]
    every.sort(key=_rank)
    page = Paginator(every, PER_PAGE).get_page(request.GET.get("page"))
    recent = recent_times({one.machine for one in page})
    found = [replace(one, recent=recent.get(one.machine, {}).get(one.queue, {})) for one in page]
    rows = list(enumerate(found, start=1))
    context = {
        "section": "queues",
        "missing": count_missing(survey.missing),
        "busy": [row for row in rows if not row[1].is_idle],
        "idle": [row for row in rows if row[1].is_idle],
        "operated": operated,
        "page": page,
        "topic": name_topic("queues", page, (one.machine for one in page)),
        "total": len(every),
        "paused": sum(1 for one in every if one.paused),
        "dead": sum(one.stats.depth["dead"] for one in every),
        "unreadable": sorted(survey.faults),
        "sheets": [],
    }
    if operated:
        back, own = (("back", "queues"),), [(n, one) for n, one in rows if one.machine in operated]
        context["sheets"] = [(n, one, QueueActions(one, back, f"q{n}").everything()) for n, one in own]
    return render_page(request, "signalbox/queues/queues.html", context)


def _rank(one: Figures) -> tuple[object, ...]:
    """Return the place of a queue in the list: those in trouble first, idle ones and the product's own last."""
    depth, is_own = one.depth, one.machine in builtin_machines.NAMES
    return -depth.dead, one.paused is None, -depth.ready, -(depth.leased + depth.delayed), is_own, one.route


@require("view")
def show(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    return queue_page(request, read_figures(Actor.of(request), machine, queue), request.GET)


def queue_page(
    request: HttpRequest, figures: Figures, asked: QueryDict, turned: FailedAction | None = None
) -> HttpResponse:
    """Render the page as of now. ``asked`` has ``place`` and ``page``; ``turned``: an action that just failed."""
    spot = find_job_page(figures, asked)
    if spot is None:
        return bad_request(request)
    search = SearchPage.of_page(request) if request.method == "GET" else SearchPage()
    hits, found = None, {"place": spot.place, "after": search.after, **search.given}
    links = ListLinks("queue", spot.machine, spot.queue, **found)
    if search.given:
        about = {"place": spot.place, "limit": SIZE, "offset": search.after}
        hits = find_jobs(Actor.of(request), spot.machine, spot.queue, search.terms, **about)
        jobs = hits.jobs
    else:
        listed = {"place": spot.place, "limit": SIZE, "offset": spot.offset}
        jobs = redacted_engine(request).jobs(spot.machine, spot.queue, **listed)
    may = allows(request.user, "operate", spot.machine)
    context = {
        "section": "queues",
        "missing": count_missing(figures.stats.missing),
        "figures": figures,
        "spot": spot,
        "rows": [(job, presenters.list_job_actions(job, spot.back) if may else []) for job in jobs],
        "last_row": spot.offset + len(jobs),
        "charts": charts.of_queue(request, spot.machine, spot.queue),
        "turned": turned,
        "search": search,
        "hits": hits,
        "act_url": ListLinks("queue-search", spot.machine, spot.queue, **found).url(),
        "further": links.url(after=hits.next) if hits and hits.next is not None else "",
    }
    return render_page(
        request, "signalbox/queues/queue.html", context | (_list_actions(figures, spot) if may else {}),
        status=turned.status if turned else 200,
    )  # fmt: skip


def _list_actions(figures: Figures, spot: JobPage) -> dict[str, Any]:
    own = QueueActions(figures, spot.back)
    actions: Sequence[Action] = [own.resume() if figures.paused else own.pause(), own.limit()]
    return {"actions": actions, "place_acts": own.of_place(spot.place)}


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest, machine: str, queue: str) -> JsonResponse:
    if queue not in redacted_engine(request).queues(machine):
        raise Http404(f"Machine {machine} has no queue {queue}.")
    return JsonResponse(charts.of_queue(request, machine, queue).as_dict())


class GroupTerms(Terms):
    order: groups.Order = "depth"
    page: int = Field(1, ge=1, le=10**6)


@require("view")
def show_groups(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    terms, actor = GroupTerms.of_page(request), Actor.of(request)
    figures, found = read_figures(actor, machine, queue), groups.list_groups(actor, machine, queue, order=terms.order)
    page = Paginator(found.items, SIZE).get_page(terms.page)
    may, back = allows(request.user, "operate", machine), (("next", request.get_full_path()),)
    makers = [QueueActions(figures, back, f"group-{n}", one if one.name else None) for n, one in enumerate(page)]
    acts = [presenters.list_group_actions(one) if may and not found.hidden else [] for one in makers]
    context = {
        "section": "queues",
        "figures": figures,
        "found": found,
        "page": page,
        "rows": list(zip(page, acts, strict=True)),
        "tabs": ListLinks("queue-groups", machine, queue, order=terms.order).tabs("order", ORDERS),
        "add": QueueActions(figures, back).limit_group() if may else None,
    }
    return render_page(request, "signalbox/queues/groups.html", context)


ORDERS = [("depth", "Most jobs"), ("age", "Longest wait"), ("rate", "Most new jobs")]

ActionFunction = Callable[[Actor, Figures, dict[str, Any]], str]
"""Does the action, and returns its result as text."""


def _make_view(name: str, action: str, done: ActionFunction) -> View:
    @answer_form("queue", "operate", action, queue="queue")
    def view(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
        return _run_action(request, machine, queue, name, done)

    return view


def _run_action(request: HttpRequest, machine: str, queue: str, name: str, done: ActionFunction) -> HttpResponse:
    """Check the form, run the action and return; a failure is shown on the queue's page with the form."""
    figures = read_figures(Actor.of(request), machine, queue)
    if name in ("pause", "resume") and request.POST.get("group") == "":
        return bad_request(request)  # it is not meant for the whole queue
    act = _make_action(figures, name, request)
    if not act.form.is_valid():
        return queue_page(request, figures, request.POST, presenters.make_failure(act))
    try:
        group = {"group": request.POST["group"]} if request.POST.get("group") and name in OF_GROUP else {}
        message = done(Actor.of(request), figures, act.form.cleaned_data | group)
    except errors.Miscounted as error:
        return _answer_miscount(request, machine, queue, error)
    except errors.BadInput as error:
        return queue_page(request, figures, request.POST, presenters.make_failure(act, error))
    messages.success(request, message)
    return _link_back(request, figures)


def _make_action(figures: Figures, name: str, request: HttpRequest, *, fresh: bool = False) -> Action:
    post = request.POST
    back = tuple((field, post[field]) for field in ("place", "page", "next") if field in post)
    if name == "limit" and post.get("group") == "":
        return QueueActions(figures, back, "again").limit_group(post)
    group = GroupFigures(post["group"]) if post.get("group") and name in OF_GROUP else None
    return QueueActions(figures, back, "again", group).make(name, post.get("place", ""), None if fresh else post)


def _answer_miscount(request: HttpRequest, machine: str, queue: str, error: errors.Miscounted) -> HttpResponse:
    """Show the queue as of now, with a form that asks for the new count."""
    figures = read_figures(Actor.of(request), machine, queue)
    act = _make_action(figures, "purge", request, fresh=True)
    act.form.initial["reason"] = request.POST.get("reason", "")
    now = f"{error.actual} {error.place} {_say_jobs(error.actual)} there now"
    message = f"You entered {error.expected}; {now}. No jobs were purged."
    turned = FailedAction(
        409, "Not purged: the number of jobs has changed", message, error.code, act if error.actual else None
    )
    return queue_page(request, figures, request.POST, turned)


def _link_back(request: HttpRequest, figures: Figures) -> HttpResponse:
    if request.POST.get("back") == "queues":
        return redirect("signalbox:queues")
    if "next" in request.POST:
        return go_back(request, "queue", figures.machine, figures.queue)
    spot = find_job_page(figures, request.POST)
    return redirect(spot.url() if spot else "signalbox:queues")


def _pause(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    queues.pause(actor, of.machine, of.queue, **given)
    return f"{_name(of, given)} paused: workers take no jobs from it until it is resumed"


def _resume(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    queues.resume(actor, of.machine, of.queue, **given)
    return f"{_name(of, given)} resumed"


def _name(of: Figures, given: dict[str, Any]) -> str:
    return f"Group {given['group']} of {of.queue}" if "group" in given else of.queue


def _limit(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    if "group" in given:
        queues.limit_group(actor, of.machine, of.queue, **given)
        return f"{_name(of, given)}: limits set"
    after = queues.limit(actor, of.machine, of.queue, **given)
    return f"{of.queue}: {_describe_limits(after.concurrency, after.rate)}"


def _describe_limits(concurrency: int | None, rate: str) -> str:
    held = [f"{concurrency} concurrent jobs"] if concurrency is not None else []
    held += [f"max {rate}"] if rate else []
    return " and ".join(held) or "no limit"


def _purge(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    count = queues.purge(actor, of.machine, of.queue, **given)
    return f"{count} {given['place']} {_pluralize_job(count)} of {of.queue} purged"


def _move(actor: Actor, of: Figures, given: dict[str, Any]) -> str:
    count = queues.move(actor, of.machine, of.queue, reason=given["reason"])
    return f"{count} delayed {_say_jobs(count)} ready now"


def _pluralize_job(count: int) -> str:
    return "job" if count == 1 else "jobs"


def _say_jobs(count: int) -> str:
    return "job is" if count == 1 else "jobs are"


ACTION_VIEWS = {
    "pause": _make_view("pause", "queue.pause", _pause),
    "resume": _make_view("resume", "queue.resume", _resume),
    "limit": _make_view("limit", "queue.limit", _limit),
    "purge": _make_view("purge", "queue.purge", _purge),
    "move": _make_view("move", "job.move", _move),
}
