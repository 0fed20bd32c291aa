"""The first page: every machine with its counts, every queue with its depths, who works, and what needs a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from django.http import HttpRequest, HttpResponse

from dashboard.models import SavedView
from dashboard.pages.shared import active_counts, charts
from dashboard.shared import version_view
from dashboard.shared.access import Scope, require, scope_of
from dashboard.shared.rendering import page
from dashboard.shared.state_counts import Track, track_of
from machines.connections import get_engine
from machines.engine import Live, Survey
from machines.services import approvals
from machines.statistics import Present, last_measured, present, storms
from machines.worker.maintenance import buffer_flush

from . import attention, notes

VIEWS = 12  # saved views that are listed
SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@dataclass(frozen=True, slots=True)
class Facts:
    """One machine in a line. ``flow`` and ``refused``: a minute's, ``flow`` None where nobody measured; ``oldest``: ms
    at which the instance came that is longest in its state; ``late``: past a service level; ``dead``: jobs."""

    flow: float | None
    state: str
    oldest: int | None
    late: int
    dead: int
    refused: int

    @property
    def pace(self) -> str:
        """``42 /min``, ``0.3 /min``; a dash where nobody measured."""
        if self.flow is None:
            return "–"
        return f"{self.flow:,.0f} /min" if self.flow >= 10 or self.flow == 0 else f"{self.flow:.1f} /min"


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    scope, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = get_engine().survey().only(scope)
    known = version_view.undrawn({name: live.version for name, live in survey.lives.items()})
    tracks = [track_of(known[name], live, shown=SHOWN) for name, live in sorted(survey.lives.items())]
    workers = survey.workers
    depths = [depth for track in tracks for depth in track.depths]
    rates = present(survey.lives)
    context = {
        "section": "machines",
        "tracks": tracks,
        "lines": [(track, _facts(track, survey.lives[track.name], rates.get(track.name))) for track in tracks],
        "views": list(islice(SavedView.shown_to(request.user), VIEWS)),
        "lost": [name for name in version_view.lost(tracks) if name in scope and name not in survey.faults],
        "unreadable": sorted(survey.faults),
        "depths": depths,
        "workers": workers,
        "charts": charts.of_overview(request, list(survey.lives)),
        "active": active_counts.rows(scope, list(survey.lives)),
        "alarms": raised(scope, operated, survey, tracks, rates),
        "total": sum(track.total for track in tracks),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    } | notes.of_overview(request)
    return page(request, "pages/overview.html", context)


def raised(
    scope: Scope, operated: Scope, survey: Survey, tracks: Iterable[Track], rates: Mapping[str, Present]
) -> list[attention.Alarm]:
    """What needs a person now, on the machines of a scope. ``operated``: those on which the viewer may do something."""
    tracks = list(tracks)
    return attention.raised(
        [depth for track in tracks for depth in track.depths],
        survey.workers,
        {track.name: track.overdue for track in tracks},
        stuck=[stuck for track in tracks for stuck in _stuck(track, survey.lives[track.name], operated)],
        paused=[(track.name, stats) for track in tracks for stats in survey.queues[track.name].values()],
        late={name: live.late for name, live in survey.lives.items()},
        storms=storms(rates),
        approvals=approvals.waiting(scope).count(),
        unmeasured=_unmeasured(survey.lives.values()),
        unwritten=buffer_flush.waiting(),
    )


def _stuck(track: Track, live: Live, operated: Scope) -> Iterator[attention.Stuck]:
    for state in track.plan.outline.states:
        if state.sla:
            count = live.breaches.get(state.name, 0)
            yield attention.Stuck(track.name, state.name, count, state.sla, track.name in operated)


def _unmeasured(lives: Iterable[Live]) -> int:
    """ms by the clock of Redis since a worker measured; 0 where nobody ever did, which the charts say themselves."""
    measured = last_measured()
    return max(0, max((live.now for live in lives), default=0) - measured) if measured else 0


def _facts(track: Track, live: Live, rates: Present | None) -> Facts:
    """``oldest``: of the states that are not final; who has arrived is in no hurry."""
    final = {state.name for state in track.plan.outline.states if state.type == "final"}
    waiting = {state: since for state, since in live.oldest.items() if state not in final}
    state = min(waiting, key=lambda name: waiting[name], default="")
    return Facts(
        flow=rates and rates.transitions,
        state=state,
        oldest=waiting.get(state),
        late=sum(live.breaches.values()),
        dead=sum(depth.dead for depth in track.depths),
        refused=round(sum(rates.refused.values())) if rates else 0,
    )
