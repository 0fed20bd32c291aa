"""The first page: what needs attention, every machine as a row, then queues, workers and charts. And the wall: every
machine as a tile."""

from itertools import islice
from typing import NamedTuple

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.alarms.queries import Alarms, collect_alarms
from dashboard.models import SavedView
from dashboard.shared import charts, version_view
from dashboard.shared.counts import count_known, count_states, name_topic, rank_depths, read_depths
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import CRITICAL, WARNING, Alarm, worst_by_machine
from machines.catalog.builtin_machines import split_system
from machines.catalog.queries import count_missing
from machines.conf import conf
from machines.engine import Survey
from machines.insight.statistics.series import rates_by_machine
from machines.people.permissions import NOTHING, Scope, allows, scope_of

from .presenters import (
    CALM,
    Figures,
    MachineRow,
    Ordering,
    address_with,
    draw_sparkline,
    gather_figures,
    group_alarms,
    list_headers,
    list_paused,
    summarize,
)

PER_PAGE = 50  # machines of one page
MAX_DEPTHS = 8  # queues with jobs, the fullest; all stand on the page of queues
MAX_WORKERS = 8
MAX_ALARMS = 8  # the worst; each has its forms, and all stand on the page of alarms
VIEWS = 12  # saved views that are listed
SHOWN = 12  # states of one machine on the overview; the machine's own page shows them all


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    scope, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = redacted_engine(request).survey()
    own, system = split_system(survey.lives)
    names = own + system if request.GET.get("system") else own
    lives = {name: survey.lives[name] for name in names}
    panels = Panels()
    alarms = collect_alarms(scope, operated, survey, panels)
    ordering = Ordering.parse(request.GET.get("sort", ""))
    figures = gather_figures(lives, worst_by_machine(alarms), alarms.rates)
    page = Paginator(ordering.sort(figures), PER_PAGE).get_page(request.GET.get("page"))
    depths = [depth for name, live in sorted(lives.items()) for depth in read_depths(name, live.queues)]
    filled = [depth for depth in depths if not depth.is_empty]
    context = {
        "rows": read_rows(request, survey, list(page), alarms),
        "tours": bool(conf.DEMO_PACE) and not request.preferences.toured,
        "may_publish": allows(request.user, "publish"),
        "headers": list_headers(request, ordering),
        "ordering": ordering,
        "views": list(islice(SavedView.list_for(request.user), VIEWS)),
        "lost": _list_lost(scope, survey),
        "unreadable": sorted(survey.faults),
        "missing": count_missing(survey.missing),
        "page": page,
        "topic": name_topic("overview", page, page),
        "depths": rank_depths(filled, MAX_DEPTHS)[:MAX_DEPTHS],
        "left_out": max(0, len(filled) - MAX_DEPTHS),
        "workers": survey.workers,
        "workers_shown": survey.workers[:MAX_WORKERS],
        "charts": charts.of_overview(request, own),
        "system": system,
        "shows_system": lives.keys() >= set(system),
        "system_url": address_with(request.GET, system=None if request.GET.get("system") else "1"),
        "alarms": alarms,
        "alarms_shown": alarms[:MAX_ALARMS],
        "alarms_left_out": max(0, len(alarms) - MAX_ALARMS),
        "total": sum(live.total for live in lives.values()),
        "ready": sum(depth.ready for depth in depths),
        "dead": sum(depth.dead for depth in depths),
    }
    return render_page(request, "signalbox/overview/overview.html", context | {"away": panels.away})


def _list_lost(scope: Scope, survey: Survey) -> list[str]:
    """List the machines of the database that are not in Redis."""
    lost = version_view.find_lost_machines(survey.lives)
    return [name for name in lost if name in scope and name not in survey.faults]


def read_rows(request: HttpRequest, survey: Survey, names: list[str], alarms: Alarms) -> list[MachineRow]:
    """Read the rows of these machines, in this order. However many there are, each store is asked as often."""
    span = "day" if request.GET.get("span") in ("day", "month") else "hour"
    known = version_view.load_versions({name: survey.lives[name].version for name in names})
    traces, about = rates_by_machine(names, span), group_alarms(alarms)
    rollouts = redacted_engine(request).rollouts(recent=True)
    found = []
    for name in names:
        live, rollout = survey.lives[name], rollouts.get(name)
        counts = count_states(known[name], live, shown=SHOWN)
        found.append(
            MachineRow(
                counts,
                summarize(counts, live, alarms.rates.get(name), count_known(live)),
                draw_sparkline(traces.get(name, []), charts.OVER[span]),
                about.get(name, []),
                list_paused(survey.queues.get(name, {})),
                rollout if rollout and rollout.under_way else None,
                frozenset(state for state, count in live.breaches.items() if count),
            )
        )
    return found


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest) -> JsonResponse:
    names, _ = split_system(redacted_engine(request).machines())
    return JsonResponse(charts.of_overview(request, names).as_dict())


MAX_MACHINES = 120  # that are shown, in turns; those in trouble first
MAX_WALL_ALARMS = 6
MAX_CHOSEN = 200


class Tile(NamedTuple):
    """Holds a machine. ``figure`` and ``unit``: what its trouble is, else its instances."""

    name: str
    severity: str
    figure: int
    unit: str
    alarm: Alarm | None


class Sum(NamedTuple):
    """Counts the alarms of a severity. ``since``: ms of the oldest, 0 where nobody knows."""

    severity: str
    count: int
    since: int
    owners: list[str]


@require("view")
def show_wall(request: HttpRequest) -> HttpResponse:
    """Show all machines that the person sees, or those of ``?machines=a,b``."""
    seen, chosen = scope_of(request.user), read_chosen(request)
    scope = seen & Scope(False, frozenset(chosen)) if chosen else seen
    survey = redacted_engine(request).survey().only(scope)
    panels = Panels()
    alarms = collect_alarms(scope, NOTHING, survey, panels)
    worst, about = worst_by_machine(alarms), group_alarms(alarms)
    own, system = split_system(survey.lives)
    names = own + [name for name in system if name in worst or name in chosen]
    figures = gather_figures({name: survey.lives[name] for name in names}, worst, alarms.rates)
    ordered = Ordering().sort(figures)
    depths = [held for name in names for held in survey.lives[name].queues.values()]
    context = {
        "sums": [add_up(alarms, severity) for severity in (CRITICAL, WARNING)],
        "alarms": alarms[:MAX_WALL_ALARMS],
        "alarms_left": max(0, len(alarms) - MAX_WALL_ALARMS),
        "tiles": [
            make_tile(figures[name], worst.get(name, ""), about.get(name, [])) for name in ordered[:MAX_MACHINES]
        ],
        "left_out": max(0, len(ordered) - MAX_MACHINES),
        "troubled": sum(one.worst < CALM for one in figures.values()),
        "machines": len(names),
        "ready": sum(held.get("ready", 0) for held in depths),
        "dead": sum(held.get("dead", 0) for held in depths),
        "total": sum(one.instances for one in figures.values()),
        "workers": len(survey.workers),
        "away": panels.away,
        "unreadable": sorted(survey.faults),
        "unknown": [name for name in chosen if name not in survey.lives and name not in survey.faults],
    }
    return render_page(request, "signalbox/overview/wall.html", context)


def read_chosen(request: HttpRequest) -> list[str]:
    """Return the machines that the address names, without repetition."""
    names = (name.strip() for name in request.GET.get("machines", "").split(","))
    return list(dict.fromkeys(name for name in names if name))[:MAX_CHOSEN]


def add_up(alarms: list[Alarm], severity: str) -> Sum:
    found = [alarm for alarm in alarms if alarm.severity == severity]
    since = min((alarm.since for alarm in found if alarm.since), default=0)
    return Sum(severity, len(found), since, sorted({alarm.owner for alarm in found if alarm.owner}))


def make_tile(figures: Figures, severity: str, alarms: list[Alarm]) -> Tile:
    """Make the tile of a machine: what most of its trouble is, else how many instances it has."""
    if figures.dead:
        return Tile(figures.name, severity, figures.dead, "dead", alarms[0] if alarms else None)
    if figures.late:
        return Tile(figures.name, severity, figures.late, "late", alarms[0] if alarms else None)
    alarm = alarms[0] if alarms else None
    if alarm and alarm.count and len(alarm.affected) == 1:
        return Tile(figures.name, severity, alarm.count, alarm.kind, alarm)
    return Tile(figures.name, severity, figures.instances, "instance" if figures.instances == 1 else "instances", alarm)
