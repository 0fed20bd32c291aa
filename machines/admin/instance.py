"""One instance in the admin: seeing it, and firing an event at it through the engine."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404

from machines import allowing
from machines.auditing import audited
from machines.connections import get_engine
from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    Instance,
    LookupFailed,
    Refused,
    SignalboxError,
    Suspended,
)
from machines.models import Machine

from . import journal
from .levers import lever_for
from .panel import panel, version_of
from .payload import EventForm
from .rights import demand
from .screens import instance_url


def show(request: HttpRequest, machine: int) -> HttpResponse:
    """``?id=`` names the instance. A POST fires."""
    demand(request, "view")
    found = get_object_or_404(Machine, pk=machine)
    instance = _instance(found, request.GET.get("id", ""))
    if request.method != "POST":
        return panel(request, found, instance)
    demand(request, "fire")
    return _fire(request, found, instance)


def _instance(machine: Machine, id: str) -> Instance:
    try:
        return get_engine().get(machine.name, id)
    except (LookupFailed, BadInput) as error:
        raise Http404(error.message) from error


def _fire(request: HttpRequest, machine: Machine, seen: Instance) -> HttpResponse:
    event = request.POST.get("event", "")
    version = version_of(machine, seen)
    form = lever_for(version, seen, event, request.POST)
    if not form.is_valid():
        return panel(request, machine, seen, form, status=400)
    try:
        about = {"machine": machine.name, "instance": seen.id, "target": event, "reason": form.reason}
        with audited(request, "fire", **about) as deed:
            if version is not None:
                allowing.ask(get_engine(), request.user, version.outline, machine.name, seen.id, event, form.payload())
            after = get_engine().fire(
                machine.name,
                seen.id,
                event,
                form.payload(),
                expect=form.expect,
                actor=request.user.get_username(),
                reason=form.reason,
            )
            deed.moved(seen.state, after)
    except SignalboxError as error:
        journal.failed(request, machine, event, seen.id, error)
        return _failed(request, machine, seen, form, error)
    journal.fired(request, machine, event, seen.state, after)
    messages.success(request, f"Fired {event}: {seen.id} is in {after.state}, version {after.version}.")
    return HttpResponseRedirect(instance_url(machine, seen.id))


def _failed(
    request: HttpRequest, machine: Machine, seen: Instance, form: EventForm, error: SignalboxError
) -> HttpResponse:
    """The page as things stand now, with the reason on top and what was entered still in its form."""
    if isinstance(error, BadPayload):
        form.blame(error.field, f"{error.message} ({error.code})")
        return panel(request, machine, seen, form, status=400)
    if isinstance(error, LookupFailed):
        raise Http404(error.message) from error
    if not isinstance(error, Refused | Conflict | Suspended | allowing.NotAllowed | BadInput):
        raise error
    status = 400 if isinstance(error, BadInput) else 403 if isinstance(error, allowing.NotAllowed) else 409
    return panel(request, machine, _instance(machine, seen.id), form, error, status=status)
