"""The first page: every machine with its counts, every queue with its depths, who works, and what needs a person."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from dashboard.access import require
from dashboard.pages import alarms, plans
from dashboard.pages.rendering import page
from dashboard.pages.tracks import Track, track_of
from machines.connections import get_engine

SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    engine = get_engine()
    tracks = [_track(name) for name in sorted(engine.machines())]
    workers = engine.workers()
    depths = [depth for track in tracks for depth in track.depths]
    context = {
        "section": "machines",
        "tracks": tracks,
        "lost": plans.lost(tracks),
        "depths": depths,
        "workers": workers,
        "alarms": alarms.raised(depths, workers, {track.name: track.overdue for track in tracks}),
        "total": sum(track.total for track in tracks),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    }
    return page(request, "pages/overview.html", context)


def _track(name: str) -> Track:
    engine = get_engine()
    live = engine.live(name)
    return track_of(plans.plan(name, live.version), live, shown=SHOWN)
