"""Collects what needs attention now for the overview, the page of alarms, the API and the metrics; with the addresses
of what alarms are about, and of the forms that fix it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.shared.errors.redis_outage import Panels
from machines.alarms.alarm import Alarm, pluralize, sort_alarms
from machines.alarms.queries import detect_alarms
from machines.alarms.recording import merge_states
from machines.engine import Survey
from machines.insight.statistics.present import Present, present
from machines.jobs.failures.queries import find_top_groups
from machines.people.permissions import Scope


def _link_machine(alarm: Alarm) -> str:
    return reverse("signalbox:machine", args=[alarm.machine])


def _queue(alarm: Alarm) -> str:
    """Return the address of the alarm's queue; of all queues where it joins several."""
    if not alarm.subject:
        return reverse("signalbox:queues")
    return reverse("signalbox:queue", args=[alarm.machine, alarm.subject])


URLS: Mapping[str, Callable[[Alarm], str]] = MappingProxyType(
    {
        "no-worker": lambda alarm: reverse("signalbox:workers"),
        "partitions": lambda alarm: reverse("signalbox:machine", args=[alarm.machines[0]]),
        "unserved": _queue,
        "no-handler": _queue,
        "timers": _link_machine,
        "dead": lambda alarm: f"{_queue(alarm)}?place=dead",
        "sla": lambda alarm: f"{_link_machine(alarm)}?{urlencode(alarm.terms)}#instances",
        "exhausted": lambda alarm: reverse("signalbox:workers"),
        "blocked": lambda alarm: reverse("signalbox:workers"),
        "clock": lambda alarm: reverse("signalbox:workers"),
        "quiet": lambda alarm: reverse("signalbox:workers"),
        "refused": lambda alarm: f"{_link_machine(alarm)}#chart-refused",
        "rollout": _link_machine,
        "paused": _queue,
        "stalled": _queue,
        "drift": lambda alarm: f"{reverse('signalbox:insight', args=[alarm.machine])}?show=times",
        "schedule": lambda alarm: reverse("signalbox:schedule", args=[alarm.subject]),
        "audit": lambda alarm: reverse("signalbox:audit"),
        "metrics": lambda alarm: reverse("signalbox:workers"),
        "approvals": lambda alarm: reverse("signalbox:approvals"),
    }
)
"""Kind -> the address of what an alarm is about."""


def link_alarm(alarm: Alarm, operated: Scope) -> Alarm:
    """Return the alarm with its addresses, and whether the viewer may act on it.

    ``operated``: the machines on which the viewer may act.
    """
    url = URLS[alarm.kind](alarm)
    alarm = replace(alarm, operated=alarm.machine in operated if alarm.machine else operated.all)
    if alarm.kind == "sla" and alarm.machine in operated:
        form = f"{reverse('signalbox:bulk-new', args=[alarm.machine])}?{urlencode(alarm.terms)}"
        return replace(alarm, url=url, act="Repair", act_url=form)
    return replace(alarm, url=url)


def link_error(alarm: Alarm, top: tuple[int, str, int] | None) -> Alarm:
    """Return the alarm with the most frequent error of its jobs. ``top``: number, exception and jobs of its group."""
    if not top or alarm.kind != "dead":
        return alarm
    group, kind, found = top
    others = max(0, alarm.count - found)
    error = f"{min(found, alarm.count):,} × {kind or 'Error'}" + (f", {pluralize(others, 'other')}" if others else "")
    return replace(alarm, error=error, error_url=reverse("signalbox:error-group", args=[group]))


class Alarms(list[Alarm]):
    """The alarms that are not snoozed, the worst first and the oldest of each severity first; ``snoozed`` has the
    others. ``rates``: those that they were detected by."""

    def __init__(self, alarms: Iterable[Alarm], rates: Mapping[str, Present]) -> None:
        ordered = sort_alarms(alarms)
        super().__init__(alarm for alarm in ordered if not alarm.is_snoozed)
        self.snoozed = [alarm for alarm in ordered if alarm.is_snoozed]
        self.rates = rates


def collect_alarms(scope: Scope, operated: Scope, survey: Survey, panels: Panels | None = None) -> Alarms:
    """Collect the alarms of the machines in scope, with what people did about them.

    ``operated``: the machines on which the viewer may act; ``panels``: of the page, which goes on without ``rates``.
    Raises EngineUnavailable.
    """
    rates = (panels or Panels()).read("rates", lambda: present(survey.lives, survey.now), {})
    return Alarms(link_alarms(merge_states(detect_alarms(scope, survey, rates)), operated), rates)


def link_alarms(alarms: Sequence[Alarm], operated: Scope) -> list[Alarm]:
    """Return the alarms with the addresses of what they are about, and of the most frequent error of dead jobs."""
    groups = find_top_groups((alarm.machine, alarm.subject) for alarm in alarms if alarm.kind == "dead")
    return [link_error(link_alarm(alarm, operated), groups.get((alarm.machine, alarm.subject))) for alarm in alarms]
