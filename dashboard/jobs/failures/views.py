"""The error inbox: the list of failure groups, one group, and the actions on it; the retry of dead jobs of any group;
the actions on all jobs that a search of a queue finds.
"""

from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.jobs import presenters as jobs
from dashboard.jobs.presenters import Action, FailedAction, SearchPage
from dashboard.shared.form_views import answer_form
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import pluralize
from machines.catalog.queries import count_missing
from machines.engine import errors
from machines.jobs import queue_actions
from machines.jobs.failures import actions as failures
from machines.jobs.failures import found_jobs, queries
from machines.jobs.failures.actions import Selection
from machines.jobs.failures.dead_jobs import MAX_OPEN
from machines.jobs.failures.queries import GroupView
from machines.jobs.search import find_jobs
from machines.models import FailureAction
from machines.people.actor import Actor

from .forms import ACTIONS, TABS, DelayForm, InboxTerms, RedriveForm, RerouteForm, RetryTerms
from .presenters import draw_trend, list_actions, make_action, make_failure, make_row

WEEK = 24 * 7  # hours of the trend of one group
SAMPLES = 20
FEW_SAMPLES = 10  # of a retry or a search
SUCCESS = {
    "mute": "Muted until it changes",
    "resolve": "Resolved",
    "reopen": "Open again",
    "stop": "Stopped",
}


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    terms = InboxTerms.of_page(request)
    found, page = terms.find(Actor.of(request)), terms.page
    links = ListLinks("errors", **terms.model_dump(exclude={"page", "limit"}))
    context = {
        "rows": [make_row(view) for view in found.items],
        "total": found.total,
        "given": terms,
        "tabs": links.tabs("state", TABS) + links.tabs("assignee", [("me", "assigned to me")]),
        "newer": links.url(page=page - 1) if page > 1 else "",
        "older": links.url(page=page + 1) if found.more else "",
        "filtered": bool(terms.machine or terms.assignee or terms.query),
    }
    return render_page(request, "signalbox/errors/errors.html", context)


@require("view")
def show(request: HttpRequest, id: int) -> HttpResponse:
    return group_page(request, id)


def group_page(
    request: HttpRequest, id: int, *, submitted: Action | None = None, turned: FailedAction | None = None
) -> HttpResponse:
    """Render the page of a group as of now. ``submitted``: a form that was not accepted; ``turned``: an action that was
    refused."""
    actor = Actor.of(request)
    view = queries.get(actor, id, hours=WEEK)
    may_act = any(actor.may("operate", machine) for machine in view.machines)
    count = len(failures.list_open(actor, Selection(id))) if may_act else 0
    jobs = queries.newest_jobs(actor, id, SAMPLES)
    shown = jobs or queries.newest_jobs(actor, id, SAMPLES, handled=True)
    actions = queries.running_actions(actor, id)
    running = next((one for one in actions if one.state == FailureAction.State.RUNNING), None)
    may_change = view.whole and all(actor.may("operate", machine) for machine in view.machines)
    offered = list_actions(view, count, running, may_change=may_change, may_act=may_act)
    context = {
        "view": view,
        "group": view.group,
        "trend": draw_trend(view.trend, "last 7 days", bars=56, width=336, height=48),
        "samples": jobs,
        "trace": next((job for job in shown if job.trace or job.error), None),
        "count": count,
        "actions": actions,
        "action_forms": [submitted if submitted and submitted.name == one.name else one for one in offered],
        "turned": turned,
    }
    status = turned.status if turned else 400 if submitted else 200
    return render_page(request, "signalbox/errors/group.html", context, status=status)


def _make_view(name: str) -> View:
    @require_audited("operate", f"failure.{name}", target="id")
    def guard(request: HttpRequest, id: int) -> GroupView:
        return queries.get(Actor.of(request), id)

    @wraps(guard)
    def view(request: HttpRequest, id: int) -> HttpResponse:
        found: Any = guard(request, id=id)  # apart, so that a refusal by the service is in the audit once
        if not isinstance(found, GroupView):
            return cast(HttpResponse, found)
        if request.method != "POST":
            return redirect("signalbox:error-group", id)
        action = make_action(found, name, 0, request.POST)
        if not action.form.is_valid():
            return group_page(request, id, submitted=action)
        try:
            message = _run(Actor.of(request), id, name, action.form.cleaned_data)
        except (errors.BadInput, errors.Miscounted) as error:
            return group_page(request, id, turned=make_failure(error))
        messages.success(request, message)
        return redirect("signalbox:error-group", id)

    return view


def _run(actor: Actor, id: int, name: str, given: dict[str, Any]) -> str:
    """Carry out an action; return what to say of it."""
    if name == "assign":
        view = failures.assign(actor, id, given["assignee"])
        return f"Assigned to {view.group.assignee}" if view.group.assignee else "Assigned to nobody"
    if name in ("redrive", "skip"):
        started = getattr(failures, name)(actor, id, **given)
        return _describe_start(started)
    getattr(failures, name)(actor, id, reason=given["reason"])
    return SUCCESS[name]


ACTION_VIEWS = {name: _make_view(name) for name in ACTIONS}


def _describe_start(started: FailureAction) -> str:
    return f"Started: {pluralize(started.total, 'job')}, at most {started.rate} a second"


@require_audited("operate", "failure.redrive")
def show_retry(request: HttpRequest) -> HttpResponse:
    """Show which dead jobs of any group the terms of the address select; a POST starts their retry."""
    terms = RetryTerms.of_page(request)
    if request.method != "POST":
        return _render_retry(request, terms)
    act = _make_retry(terms, 0, request.POST)
    if not act.form.is_valid():
        return _render_retry(request, terms, submitted=act, status=400)
    where = terms.selection
    try:
        started = failures.redrive(
            Actor.of(request), where.group, machine=where.machine, queue=where.queue, **act.form.cleaned_data
        )
    except (errors.BadInput, errors.Miscounted) as error:
        turned = make_failure(error)
        return _render_retry(request, terms, turned=turned, status=turned.status)
    messages.success(request, _describe_start(started))
    return redirect(terms.address)


def _render_retry(
    request: HttpRequest, terms: RetryTerms, *, submitted: Action | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    actor = Actor.of(request)
    scope, rows = actor.scope("operate"), failures.list_open(actor, terms.selection)
    context = {
        "terms": terms,
        "queues": queries.count_by_queue(scope),
        "groups": queries.count_by_group(scope),
        "count": len(rows),
        "is_cut": len(rows) == MAX_OPEN,
        "machines": len({row.machine for row in rows}),
        "samples": queries.read_jobs(actor, rows[: -FEW_SAMPLES - 1 : -1]),
        "act": submitted or _make_retry(terms, len(rows)),
        "actions": queries.running_actions(actor, None),
    }
    return render_page(request, "signalbox/errors/retry.html", context | more, status=status)


def _make_retry(terms: RetryTerms, count: int, sent: Mapping[str, Any] | None = None) -> Action:
    form = RedriveForm(sent, id="retry", initial={"expect": count})
    about = (
        "Makes the jobs ready again with all attempts. An instance that is still in the state waits for its job again."
    )
    label = f"Retry {pluralize(count, 'job')}" if count else "Retry jobs"
    return Action("redrive", label, about, terms.address, form, "retry")


@answer_form("error-retry", "operate", "failure.stop", takes=(), refused=(errors.BadInput,))
def stop_retry(request: HttpRequest, number: int) -> str:
    stopped = failures.stop_retry(Actor.of(request), number, reason=request.POST.get("reason", ""))
    return f"Stopped after {pluralize(stopped.position, 'job')}" if stopped else "It had ended before"


ABOUT = {
    "redrive": "The jobs become ready again, with their attempts reset.",
    "move": "The jobs become ready immediately.",
    "withdraw": "Removes the jobs permanently. Each waiting instance receives error.invoke with the kind Withdrawn; a"
    " worker that runs one learns of it with its next heartbeat.",
}
PAST_ALL = 10**9  # where a search reads nothing: what follows the progress alone needs no jobs


@require_audited("operate", "job.move", queue="queue")
def show_search(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    """Show which jobs the terms of the address find; a POST starts an action on them."""
    place, search = request.GET.get("place", "ready"), SearchPage.of_page(request)
    if place not in found_jobs.ACTIONS:
        raise Http404("Unknown job state.")
    links = ListLinks("queue-search", machine, queue, place=place, after=search.after, **search.given)
    actor, figures = Actor.of(request), jobs.read_figures(Actor.of(request), machine, queue)
    turned, status, others = None, 200, sorted(queue_actions.stats(actor, machine).keys() - {queue})
    names = [name for name in found_jobs.ACTIONS[place] if others or name != "reroute"]
    if request.method == "POST":
        name = request.POST.get("action", "")
        if name not in names:
            raise Http404("Unknown action.")
        act = _make_search_action(links.url(), name, 0, others, request.POST)
        turned = jobs.make_failure(act)
        if act.form.is_valid():
            try:
                about = {"place": place, "action": name, "offset": search.after, **act.form.cleaned_data}
                made = found_jobs.start(actor, machine, queue, search.terms, found_jobs.JobsOrder(**about))
            except (errors.BadInput, errors.Miscounted) as error:
                turned = make_failure(error)
            else:
                messages.success(request, _describe_start(made))
                return redirect(links.url())
        status = turned.status
    about = {"place": place, "limit": found_jobs.MAX_CHOSEN, "offset": search.after, "seconds": found_jobs.SECONDS}
    hits = find_jobs(actor, machine, queue, search.terms, **about)
    count = len(hits.jobs)
    running = queries.running_actions(actor, None, 20)
    context = {
        "section": "queues",
        "figures": figures,
        "place": place,
        "search": search,
        "address": links.url(),
        "progress_url": links.url(after=PAST_ALL),
        "hits": hits,
        "missing": count_missing(hits.missing),
        "further": links.url(after=hits.next) if hits.next is not None else "",
        "count": count,
        "samples": hits.jobs[:FEW_SAMPLES],
        "turned": turned,
        "acts": [_make_search_action(links.url(), name, count, others) for name in names] if count else [],
        "actions": [one for one in running if (one.terms.get("machine"), one.terms.get("queue")) == (machine, queue)],
    }
    return render_page(request, "signalbox/queues/search.html", context, status=status)


def _make_search_action(
    url: str, name: str, count: int, others: Iterable[str], sent: Mapping[str, Any] | None = None
) -> Action:
    label, about = jobs.JOB_ACTIONS[name]
    about = ABOUT.get(name, about)
    kind, more = {"delay": (DelayForm, {}), "reroute": (RerouteForm, {"queues": others})}.get(name, (RedriveForm, {}))
    form = kind(sent, id=name, initial={"expect": count}, **more)
    text = f"{label} {pluralize(count, 'job')}" if count else label
    return Action(name, text, about, url, form, name, name == "withdraw", (("action", name),))
