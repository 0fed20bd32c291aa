"""The first page: every machine with its counts, every queue with its depths, who works, and what needs a person."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse

from dashboard.access import require
from dashboard.pages import alarms, plans
from dashboard.pages.rendering import page
from dashboard.pages.tracks import Track, track_of
from machines.connections import get_engine
from machines.engine import Live

SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    survey = get_engine().survey()
    tracks = [_track(live) for _, live in sorted(survey.lives.items())]
    workers = survey.workers
    depths = [depth for track in tracks for depth in track.depths]
    context = {
        "section": "machines",
        "tracks": tracks,
        "lost": [name for name in plans.lost(tracks) if name not in survey.faults],
        "unreadable": sorted(survey.faults),
        "depths": depths,
        "workers": workers,
        "alarms": alarms.raised(
            depths,
            workers,
            {track.name: track.overdue for track in tracks},
            stuck=[stuck for track in tracks for stuck in _stuck(track, survey.lives[track.name])],
            paused=[(track.name, stats) for track in tracks for stats in survey.queues[track.name].values()],
        ),
        "total": sum(track.total for track in tracks),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    }
    return page(request, "pages/overview.html", context)


def _track(live: Live) -> Track:
    return track_of(plans.plan(live.machine, live.version), live, shown=SHOWN)


def _stuck(track: Track, live: Live) -> Iterator[alarms.Stuck]:
    for state in track.plan.outline.states:
        if state.sla:
            yield alarms.Stuck(track.name, state.name, live.breaches.get(state.name, 0), state.sla)
