"""The error inbox: the list of failure groups, one group, and the actions on it."""

from __future__ import annotations

from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.jobs.queues.presenters import Action, FailedAction
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import pluralize
from machines.engine import errors
from machines.failures import actions as failures
from machines.failures import queries
from machines.failures.actions import Selection
from machines.failures.queries import GroupView
from machines.models import FailureAction
from machines.people.actor import Actor

from .forms import ACTIONS, TABS, InboxTerms
from .presenters import draw_trend, list_actions, make_action, make_failure, make_row, make_sample

WEEK = 24 * 7  # hours of the trend of one group
SAMPLES = 20
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
        "samples": [make_sample(job) for job in jobs],
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
            return group_page(request, id, turned=make_failure(action, error))
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
        return f"Started: {pluralize(started.total, 'job')}, at most {started.rate} a second"
    getattr(failures, name)(actor, id, reason=given["reason"])
    return SUCCESS[name]


ACTION_VIEWS = {name: _make_view(name) for name in ACTIONS}
