"""Addresses of what alarms are about, and of the forms that fix it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlencode

from django.urls import reverse

from machines.alarms.alarm import Alarm, pluralize
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
        "writes": lambda alarm: f"{reverse('signalbox:workers')}#unwritten",
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
