"""One instance in the admin: seeing it, and firing an event at it through the engine."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from machines.connections import get_engine
from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    Instance,
    LookupFailed,
    NotAllowed,
    Refused,
    SignalboxError,
    Suspended,
)
from machines.models import Machine
from machines.services import Actor, ApprovalNeeded, approvals, instances
from machines.services.errors import TooFast
from machines.services.reading import redactor_of

from . import journal
from .levers import lever_for
from .panel import panel, version_of
from .payload import EventForm
from .rights import machine_of
from .screens import instance_url


def show(request: HttpRequest, machine: int) -> HttpResponse:
    """``?id=`` names the instance. A POST fires."""
    found = machine_of(request, machine)
    id = request.GET.get("id", "")
    if request.method != "POST":
        return panel(request, found, _instance(found, id))
    Actor.of(request).demand("fire", found.name, action="fire", instance=id, target=request.POST.get("event", ""))
    return _fire(request, found, _instance(found, id))


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
    actor = Actor.of(request)
    try:
        after = instances.fire(
            actor, machine.name, seen.id, event, form.payload(), expect=form.expect, reason=form.reason
        )
    except ApprovalNeeded as needed:
        return _filed(request, machine, seen, form, needed)
    except TooFast:
        raise  # whoever is refused can come a million times, and it is in the audit
    except SignalboxError as error:
        journal.failed(request, machine, event, seen.id, error)
        return _failed(request, machine, seen, form, error)
    journal.fired(request, machine, event, seen.state, after)
    messages.success(request, f"Fired {event}: {seen.id} is in {after.state}, revision {after.version}.")
    return HttpResponseRedirect(instance_url(machine, seen.id))


def _filed(
    request: HttpRequest, machine: Machine, seen: Instance, form: EventForm, needed: ApprovalNeeded
) -> HttpResponse:
    """It waits for a second person, who decides it outside the admin."""
    try:
        filed = approvals.ask(Actor.of(request), needed)
    except BadInput as error:
        return _failed(request, machine, seen, form, error)
    messages.warning(
        request,
        f"Approval requested: {filed.action} on {filed.subject} (request {filed.pk})."
        " It runs once another person approves it.",
    )
    return HttpResponseRedirect(instance_url(machine, seen.id))


def _failed(
    request: HttpRequest, machine: Machine, seen: Instance, form: EventForm, error: SignalboxError
) -> HttpResponse:
    """The page as things stand now, with the reason on top and what was entered still in its form."""
    if isinstance(error, BadPayload):
        told = redactor_of(Actor.of(request), machine.name).error(error)
        form.blame(error.field, f"{told} ({error.code})")
        return panel(request, machine, seen, form, status=400)
    if isinstance(error, LookupFailed):
        raise Http404(error.message) from error
    if not isinstance(error, Refused | Conflict | Suspended | NotAllowed | BadInput):
        raise error
    status = 400 if isinstance(error, BadInput) else 403 if isinstance(error, NotAllowed) else 409
    return panel(request, machine, _instance(machine, seen.id), form, error, status=status)
