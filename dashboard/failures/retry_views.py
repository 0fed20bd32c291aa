"""The retry of dead jobs of any group: which ones, some of them, at which rate, and the progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.jobs.queues.presenters import Action
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import require_audited
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import pluralize
from machines.engine import errors
from machines.failures import actions as failures
from machines.failures import queries
from machines.failures.dead_jobs import MAX_OPEN
from machines.people.actor import Actor

from .forms import RedriveForm, RetryTerms
from .presenters import make_failure, make_sample

SAMPLES = 10


@require_audited("operate", "failure.redrive")
def show(request: HttpRequest) -> HttpResponse:
    """Show which jobs the terms of the address select; a POST starts their retry."""
    terms = RetryTerms.of_page(request)
    if request.method != "POST":
        return _render_page(request, terms)
    act = _make_action(terms, 0, request.POST)
    if not act.form.is_valid():
        return _render_page(request, terms, submitted=act, status=400)
    where = terms.selection
    try:
        started = failures.redrive(
            Actor.of(request), where.group, machine=where.machine, queue=where.queue, **act.form.cleaned_data
        )
    except (errors.BadInput, errors.Miscounted) as error:
        turned = make_failure(act, error)
        return _render_page(request, terms, turned=turned, status=turned.status)
    messages.success(request, f"Started: {pluralize(started.total, 'job')}, at most {started.rate} a second")
    return redirect(terms.address)


def _render_page(
    request: HttpRequest, terms: RetryTerms, *, submitted: Action | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    actor = Actor.of(request)
    scope, rows = actor.scope("operate"), failures.list_open(actor, terms.selection)
    act = submitted or _make_action(terms, len(rows))
    context = {
        "terms": terms,
        "queues": queries.count_by_queue(scope),
        "groups": queries.count_by_group(scope),
        "count": len(rows),
        "is_cut": len(rows) == MAX_OPEN,
        "machines": len({row.machine for row in rows}),
        "samples": [make_sample(job) for job in queries.read_jobs(actor, rows[: -SAMPLES - 1 : -1])],
        "act": act,
        "actions": queries.running_actions(actor, None),
    }
    return render_page(request, "signalbox/errors/retry.html", context | more, status=status)


def _make_action(terms: RetryTerms, count: int, sent: Mapping[str, Any] | None = None) -> Action:
    form = RedriveForm(sent, id="retry", initial={"expect": count})
    about = (
        "Makes the jobs ready again with all attempts. An instance that is still in the state waits for its job again."
    )
    label = f"Retry {pluralize(count, 'job')}" if count else "Retry jobs"
    return Action("redrive", label, about, terms.address, form, "retry")


@answer_form("error-retry", "operate", "failure.stop", takes=(), refused=(errors.BadInput,))
def stop(request: HttpRequest, number: int) -> str:
    stopped = failures.stop_retry(Actor.of(request), number, reason=request.POST.get("reason", ""))
    return f"Stopped after {pluralize(stopped.position, 'job')}" if stopped else "It had ended before"
