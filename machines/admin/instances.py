"""A machine's instances in the admin: by state, oldest first, or one by its id."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from machines.catalog.models.machine import Machine
from machines.catalog.outlines import get_version
from machines.connections import get_engine
from machines.engine import BadInput, EngineUnavailable, Instance, Live, LookupFailed, SignalboxError, UnknownMachine

from .context import instance_url, instances_url, moment, screen
from .permissions import machine_of

PAGE = 50  # instances


def show(request: HttpRequest, machine: int) -> HttpResponse:
    found = machine_of(request, machine)
    wanted = request.GET.get("id", "").strip()
    if wanted:
        return _jump(request, found, wanted)
    try:
        context, status = _listing(request, found), 200
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        context, status = {"problem": error}, 404 if isinstance(error, LookupFailed) else 400
    return screen(request, "instances.html", found, f"Instances of {found}", status=status, **context)


def _jump(request: HttpRequest, machine: Machine, id: str) -> HttpResponse:
    """Redirect to the instance with this id, or back to the list with a message about it."""
    try:
        get_engine().get(machine.name, id)
    except (LookupFailed, BadInput) as error:
        messages.error(request, f"{error.message} ({error.code})")
        return HttpResponseRedirect(instances_url(machine))
    return HttpResponseRedirect(instance_url(machine, id))


def _listing(request: HttpRequest, machine: Machine) -> dict[str, Any]:
    engine = get_engine()
    live = engine.live(machine.name)
    state = request.GET.get("state") or None
    page = engine.find(machine.name, state=state, limit=PAGE, cursor=request.GET.get("cursor") or None)
    further = {"cursor": page.cursor} | ({"state": state} if state else {}) if page.cursor else None
    return {
        "state": state,
        "states": [(name, count, instances_url(machine, state=name)) for name, count in _count_states(machine, live)],
        "total": live.total,
        "everything": instances_url(machine),
        "rows": [_row(machine, instance) for instance in page],
        "further": instances_url(machine, **further) if further else "",
    }


def _count_states(machine: Machine, live: Live) -> list[tuple[str, int]]:
    """Return states in the order of the current definition, those around others with their sums; then those that only
    older versions have."""
    try:
        outline = get_version(machine.name, live.version).outline
    except UnknownMachine:
        return list(live.counts.items())
    states = [state.name for state in outline.states if state.type != "history" and state.name != outline.root]
    counted = outline.sum_counts(live.counts)
    past = [(name, count) for name, count in live.counts.items() if name not in counted]
    return [(name, counted[name]) for name in states] + past


def _row(machine: Machine, instance: Instance) -> dict[str, Any]:
    return {"instance": instance, "url": instance_url(machine, instance.id), "entered": moment(instance.entered)}
