"""The wall screen: the figures that a room looks at, large, without anything to press."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

from dashboard.alarms.queries import collect_alarms
from dashboard.shared.errors.panels import Panels
from dashboard.shared.permissions import Scope, require, scope_of
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import CRITICAL, WARNING, Alarm, worst_by_machine
from machines.catalog.builtin_machines import split_system
from machines.people.permissions import NOTHING
from machines.statistics.present import present

from .machine_rows import CALM, Figures, Ordering, gather_figures, group_alarms

MAX_MACHINES = 120  # that are shown, in turns; those in trouble first
MAX_ALARMS = 6
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
def show(request: HttpRequest) -> HttpResponse:
    """Show all machines that the person sees, or those of ``?machines=a,b``."""
    seen, chosen = scope_of(request.user), read_chosen(request)
    scope = seen & Scope(False, frozenset(chosen)) if chosen else seen
    survey = redacted_engine(request).survey().only(scope)
    panels = Panels()
    rates = panels.read("rates", lambda: present(survey.lives), {})
    alarms = [each for each in collect_alarms(scope, NOTHING, survey, rates) if not each.is_snoozed]
    worst, about = worst_by_machine(alarms), group_alarms(alarms)
    own, system = split_system(survey.lives)
    names = own + [name for name in system if name in worst or name in chosen]
    figures = gather_figures({name: survey.lives[name] for name in names}, worst, rates)
    ordered = Ordering().sort(figures)
    depths = [held for name in names for held in survey.lives[name].queues.values()]
    context = {
        "sums": [add_up(alarms, severity) for severity in (CRITICAL, WARNING)],
        "alarms": alarms[:MAX_ALARMS],
        "alarms_left": max(0, len(alarms) - MAX_ALARMS),
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
    return Tile(figures.name, severity, figures.instances, "instances", alarm)
