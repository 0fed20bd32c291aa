"""The first page: what needs attention, every machine as a row, then queues, workers, notes and charts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.alarms.queries import collect_alarms
from dashboard.models import SavedView
from dashboard.shared.diagrams import version_view
from dashboard.shared.errors.panels import Panels
from dashboard.shared.figures import active_counts, charts
from dashboard.shared.figures.queue_depths import read_depths
from dashboard.shared.figures.ranking import name_topic, rank_depths
from dashboard.shared.figures.state_counts import count_states
from dashboard.shared.figures.version_counts import count_known
from dashboard.shared.permissions import allows, require, scope_of
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import Alarm, worst_by_machine
from machines.catalog.builtin_machines import split_system
from machines.catalog.queries import count_missing
from machines.engine import Survey
from machines.statistics.present import Present, present
from machines.statistics.series import rates_by_machine

from . import notes
from .machine_rows import (
    MachineRow,
    Ordering,
    address_with,
    gather_figures,
    group_alarms,
    list_headers,
    list_paused,
    summarize,
)
from .sparkline import draw_sparkline

PER_PAGE = 50  # machines of one page
MAX_DEPTHS = 8  # queues, the fullest; all stand on the page of queues
MAX_WORKERS = 8
MAX_ALARMS = 8  # the worst; each has its forms, and all stand on the page of alarms
VIEWS = 12  # saved views that are listed
SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all
LOOKS = ("table", "cards")
LOOK = "overview.look"  # in the session


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    scope, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = redacted_engine(request).survey()
    own, system = split_system(survey.lives)
    names = own + system if request.GET.get("system") else own
    lives = {name: survey.lives[name] for name in names}
    panels = Panels()
    rates = panels.read("rates", lambda: present(survey.lives), {})
    alarms = collect_alarms(scope, operated, survey, rates)
    raised = [alarm for alarm in alarms if not alarm.is_snoozed]
    ordering = Ordering.parse(request.GET.get("sort", ""))
    figures = gather_figures(lives, worst_by_machine(raised), rates)
    page = Paginator(ordering.sort(figures), PER_PAGE).get_page(request.GET.get("page"))
    depths = [depth for name, live in sorted(lives.items()) for depth in read_depths(name, live.queues)]
    context = {
        "section": "machines",
        "rows": read_rows(request, survey, list(page), rates, raised),
        "look": choose_look(request),
        "may_publish": allows(request.user, "publish"),
        "look_urls": [(look, address_with(request.GET, view=look)) for look in LOOKS],
        "headers": list_headers(request, ordering),
        "ordering": ordering,
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
        "workers_shown": survey.workers[:MAX_WORKERS],
        "charts": charts.of_overview(request, own),
        "active": active_counts.list_rows(scope, list(survey.lives), panels),
        "system": system,
        "shows_system": lives.keys() >= set(system),
        "system_url": address_with(request.GET, system=None if request.GET.get("system") else "1"),
        "alarms": alarms,
        "alarms_shown": alarms[:MAX_ALARMS],
        "alarms_left_out": max(0, len(alarms) - MAX_ALARMS),
        "total": sum(live.total for live in lives.values()),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    } | panels.read("note", lambda: notes.read_note(request), {})
    return render_page(request, "signalbox/overview/overview.html", context | {"away": panels.away})


def read_rows(
    request: HttpRequest, survey: Survey, names: list[str], rates: Mapping[str, Present], alarms: list[Alarm]
) -> list[MachineRow]:
    """Read the rows of these machines, in this order. However many there are, each store is asked as often."""
    span = "day" if request.GET.get("span") in ("day", "month") else "hour"
    known = version_view.load_versions({name: survey.lives[name].version for name in names})
    traces, about = rates_by_machine(names, span), group_alarms(alarms)
    rollouts = redacted_engine(request).rollouts(recent=True)
    found = []
    for name in names:
        live, rollout = survey.lives[name], rollouts.get(name)
        track = count_states(known[name], live, shown=SHOWN)
        found.append(
            MachineRow(
                track,
                summarize(track, live, rates.get(name), count_known(live)),
                draw_sparkline(traces.get(name, []), charts.OVER[span]),
                about.get(name, []),
                list_paused(survey.queues.get(name, {})),
                rollout if rollout and rollout.under_way else None,
            )
        )
    return found


def choose_look(request: HttpRequest) -> str:
    """Return "table" or "cards": what the address asks for, else what this person chose last."""
    asked = request.GET.get("view", "")
    if asked in LOOKS and request.session.get(LOOK, LOOKS[0]) != asked:
        request.session[LOOK] = asked
    kept = asked if asked in LOOKS else request.session.get(LOOK)
    return kept if kept in LOOKS else LOOKS[0]


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest) -> JsonResponse:
    names, _ = split_system(redacted_engine(request).machines())
    return JsonResponse(charts.of_overview(request, names).as_dict())
