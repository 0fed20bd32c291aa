"""The first page: every machine with its counts, every queue with its depths, the workers, and what needs attention."""

from __future__ import annotations

from itertools import islice

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.models import SavedView
from dashboard.pages.shared import active_counts, charts
from dashboard.shared import version_view
from dashboard.shared.access import require, scope_of
from dashboard.shared.attention import collect_alarms
from dashboard.shared.rendering import render_page
from dashboard.shared.state_counts import count_states
from machines.connections import get_engine
from machines.statistics import present

from . import notes
from .presenters import summarize

VIEWS = 12  # saved views that are listed
SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    scope, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = get_engine().survey().only(scope)
    known = version_view.load_versions({name: live.version for name, live in survey.lives.items()})
    tracks = [count_states(known[name], live, shown=SHOWN) for name, live in sorted(survey.lives.items())]
    workers = survey.workers
    depths = [depth for track in tracks for depth in track.depths]
    rates = present(survey.lives)
    context = {
        "section": "machines",
        "tracks": tracks,
        "lines": [(track, summarize(track, survey.lives[track.name], rates.get(track.name))) for track in tracks],
        "views": list(islice(SavedView.shown_to(request.user), VIEWS)),
        "lost": [
            name for name in version_view.find_lost_machines(tracks) if name in scope and name not in survey.faults
        ],
        "unreadable": sorted(survey.faults),
        "depths": depths,
        "workers": workers,
        "charts": charts.of_overview(request, list(survey.lives)),
        "active": active_counts.list_rows(scope, list(survey.lives)),
        "alarms": collect_alarms(scope, operated, survey, tracks, rates),
        "total": sum(track.total for track in tracks),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    } | notes.read_note(request)
    return render_page(request, "overview/overview.html", context)


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest) -> JsonResponse:
    scope = scope_of(request.user)
    names = [name for name in get_engine().machines() if name in scope]
    return JsonResponse(charts.of_overview(request, names).as_dict())
