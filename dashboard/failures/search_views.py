"""Actions on all jobs that a search finds: what it finds, the forms, and the progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.jobs.queues import presenters
from dashboard.jobs.queues.presenters import JOB_ACTIONS, Action, SearchPage, read_figures
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require_audited
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import pluralize
from machines.catalog.queries import count_missing
from machines.engine import errors
from machines.failures import queries
from machines.failures.found_jobs import ACTIONS, MAX_CHOSEN, SECONDS, start
from machines.jobs import queue_actions
from machines.jobs.search import find_jobs
from machines.people.actor import Actor

from .forms import DelayForm, RedriveForm, RerouteForm

ABOUT = {
    "redrive": "The jobs become ready again, with their attempts reset.",
    "move": "The jobs become ready immediately.",
    "withdraw": "Removes the jobs permanently. Each waiting instance receives error.invoke with the kind Withdrawn; a"
    " worker that runs one learns of it with its next heartbeat.",
}
SAMPLES = 10
PAST_ALL = 10**9  # where a search reads nothing: what follows the progress alone needs no jobs


@require_audited("operate", "job.move", queue="queue")
def show(request: HttpRequest, machine: str, queue: str) -> HttpResponse:
    """Show which jobs the terms of the address find; a POST starts an action on them."""
    place, search = request.GET.get("place", "ready"), SearchPage.of_page(request)
    if place not in ACTIONS:
        raise Http404("Unknown job state.")
    links = ListLinks("queue-search", machine, queue, place=place, after=search.after, **search.given)
    actor, figures = Actor.of(request), read_figures(Actor.of(request), machine, queue)
    turned, status, others = None, 200, sorted(queue_actions.stats(actor, machine).keys() - {queue})
    names = [name for name in ACTIONS[place] if others or name != "reroute"]
    if request.method == "POST":
        name = request.POST.get("action", "")
        if name not in names:
            raise Http404("Unknown action.")
        act = _make_action(links.url(), name, 0, others, request.POST)
        turned = presenters.make_failure(act)
        if act.form.is_valid():
            try:
                about = {"place": place, "action": name, "offset": search.after, **act.form.cleaned_data}
                made = start(actor, machine, queue, search.terms, **about)
            except (errors.BadInput, errors.Miscounted) as error:
                turned = presenters.FailedAction(409, "Not done", error.message, error.code)
            else:
                messages.success(request, f"Started: {pluralize(made.total, 'job')}, at most {made.rate} a second")
                return redirect(links.url())
        status = turned.status
    about = {"place": place, "limit": MAX_CHOSEN, "offset": search.after, "seconds": SECONDS}
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
        "samples": hits.jobs[:SAMPLES],
        "turned": turned,
        "acts": [_make_action(links.url(), name, count, others) for name in names] if count else [],
        "actions": [one for one in running if (one.terms.get("machine"), one.terms.get("queue")) == (machine, queue)],
    }
    return render_page(request, "signalbox/queues/search.html", context, status=status)


def _make_action(
    url: str, name: str, count: int, others: Iterable[str], sent: Mapping[str, Any] | None = None
) -> Action:
    label, about = JOB_ACTIONS[name]
    about = ABOUT.get(name, about)
    kind, more = {"delay": (DelayForm, {}), "reroute": (RerouteForm, {"queues": others})}.get(name, (RedriveForm, {}))
    form = kind(sent, id=name, initial={"expect": count}, **more)
    text = f"{label} {count:,} job{'' if count == 1 else 's'}" if count else label
    return Action(name, text, about, url, form, name, name == "withdraw", (("action", name),))
