"""The first page: every machine with its counts, every queue with its depths, the workers, and what needs attention."""

from __future__ import annotations

from itertools import islice

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.models import SavedView
from dashboard.pages.shared import active_counts, charts
from dashboard.pages.shared.missing_partitions import count_missing
from dashboard.pages.shared.ranking import name_topic, rank_depths, rank_machines
from dashboard.shared import version_view
from dashboard.shared.access import require, scope_of
from dashboard.shared.attention import collect_alarms
from dashboard.shared.queue_depths import read_depths
from dashboard.shared.rendering import render_page
from dashboard.shared.state_counts import count_states
from machines.connections import get_engine
from machines.statistics import present

from . import notes
from .presenters import summarize

PER_PAGE = 50  # machines of one page
MAX_DEPTHS = 40  # queues beside them; all stand on the page of queues
VIEWS = 12  # saved views that are listed
SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    scope, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = get_engine().survey().only(scope)
    page = Paginator(rank_machines(survey.lives, PER_PAGE), PER_PAGE).get_page(request.GET.get("page"))
    known = version_view.load_versions({name: survey.lives[name].version for name in page})
    tracks = [count_states(known[name], survey.lives[name], shown=SHOWN) for name in page]
    depths = [depth for name, live in sorted(survey.lives.items()) for depth in read_depths(name, live.queues)]
    rates = present(survey.lives)
    context = {
        "section": "machines",
        "tracks": tracks,
        "lines": [(track, summarize(track, survey.lives[track.name], rates.get(track.name))) for track in tracks],
        "views": list(islice(SavedView.shown_to(request.user), VIEWS)),
        "lost": [
            name
            for name in version_view.find_lost_machines(survey.lives)
            if name in scope and name not in survey.faults
        ],
        "unreadable": sorted(survey.faults),
        "missing": count_missing(survey.missing),
        "page": page,
        "topic": name_topic("overview", page, page),
        "depths": rank_depths(depths, MAX_DEPTHS)[:MAX_DEPTHS],
        "left_out": max(0, len(depths) - MAX_DEPTHS),
        "workers": survey.workers,
        "charts": charts.of_overview(request, list(survey.lives)),
        "active": active_counts.list_rows(scope, list(survey.lives)),
        "alarms": collect_alarms(scope, operated, survey, rates),
        "total": sum(live.total for live in survey.lives.values()),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    } | notes.read_note(request)
    return render_page(request, "signalbox/overview/overview.html", context)


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest) -> JsonResponse:
    scope = scope_of(request.user)
    names = [name for name in get_engine().machines() if name in scope]
    return JsonResponse(charts.of_overview(request, names).as_dict())
