"""One instance in the admin: where it is, what it holds, what can be done to it; and doing it, through the engine."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404

from machines.connections import get_engine
from machines.engine import BadInput, BadPayload, Conflict, Instance, LookupFailed, Refused, SignalboxError
from machines.engine.definitions import EventOutline, Outline
from machines.models import Machine, MachineVersion

from . import journal
from .payload import EventForm
from .rights import demand, may
from .screens import drawing, instance_url, moment, screen

STEPS = 25  # of the history


def show(request: HttpRequest, machine: int) -> HttpResponse:
    """``?id=`` names the instance. A POST fires."""
    demand(request, "view")
    found = get_object_or_404(Machine, pk=machine)
    id = request.GET.get("id", "")
    if request.method == "POST":
        demand(request, "fire")
        return _fire(request, found, _instance(found, id))
    return _screen(request, found, _instance(found, id))


def _instance(machine: Machine, id: str) -> Instance:
    try:
        return get_engine().get(machine.name, id)
    except (LookupFailed, BadInput) as error:
        raise Http404(error.message) from error


def _fire(request: HttpRequest, machine: Machine, seen: Instance) -> HttpResponse:
    event = request.POST.get("event", "")
    events = _events(_outline(machine, seen), seen)
    number = next((place for place, outline in enumerate(events) if outline.name == event), None)
    form = EventForm(events[number] if number is not None else EventOutline(event), number=number or 0, data=request.POST)
    if not form.is_valid():
        return _screen(request, machine, seen, form, status=400)
    try:
        after = get_engine().fire(
            machine.name,
            seen.id,
            event,
            form.payload(),
            expect=form.cleaned_data["expect"],
            actor=request.user.get_username(),
            reason=form.cleaned_data["reason"],
        )
    except SignalboxError as error:
        return _failed(request, machine, seen, form, error)
    journal.fired(request, machine, event, seen.state, after)
    messages.success(request, f"{event}: {seen.id} is in {after.state}, version {after.version}.")
    return HttpResponseRedirect(instance_url(machine, seen.id))


def _failed(
    request: HttpRequest, machine: Machine, seen: Instance, form: EventForm, error: SignalboxError
) -> HttpResponse:
    """The page as things stand now, with the reason on top and what was entered still in its form."""
    journal.failed(request, machine, form.cleaned_data["event"], seen.id, error)
    if isinstance(error, BadPayload):
        form.blame(error.field, f"{error.message} ({error.code})")
        return _screen(request, machine, seen, form, status=400)
    if not isinstance(error, Refused | Conflict | BadInput):
        raise error
    status = 400 if isinstance(error, BadInput) else 409
    return _screen(request, machine, _instance(machine, seen.id), form, error, status=status)


def _screen(
    request: HttpRequest,
    machine: Machine,
    instance: Instance,
    tried: EventForm | None = None,
    error: SignalboxError | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    version = _version(machine, instance)
    return screen(
        request,
        "instance.html",
        machine,
        instance.id,
        status=status,
        instance=instance,
        drawing=drawing(version, instance.configuration) if version else "",
        facts={"entered": moment(instance.entered), "created": moment(instance.created)},
        data=_data(version, instance),
        levers=_levers(version, instance, tried) if may(request, "fire") else [],
        may_fire=may(request, "fire"),
        error=error,
        is_conflict=isinstance(error, Conflict),
        candidates=error.candidates if isinstance(error, Refused) else [],
        steps=[(step, moment(step.at)) for step in get_engine().history(machine.name, instance.id, limit=STEPS)],
    )


def _version(machine: Machine, instance: Instance) -> MachineVersion | None:
    try:
        return machine.version(instance.definition)
    except MachineVersion.DoesNotExist:
        return None


def _outline(machine: Machine, instance: Instance) -> Outline | None:
    version = _version(machine, instance)
    return version.outline if version else None


def _data(version: MachineVersion | None, instance: Instance) -> list[dict[str, Any]]:
    """Declared fields in document order, set or not; then whatever else there is."""
    declared = {field.name: field.description for field in version.outline.data} if version else {}
    names = [*declared, *(name for name in instance.data if name not in declared)]
    return [
        {"name": name, "is_set": name in instance.data, "value": instance.data.get(name), "hint": declared.get(name, "")}
        for name in names
    ]


def _events(outline: Outline | None, instance: Instance) -> list[EventOutline]:
    """What the current state listens for, then every other event of the machine, which would be refused."""
    if outline is None:
        return []
    here = {event.name: event for state in instance.configuration for event in outline.events_of(state)}
    everywhere = {event.name: event for state in outline.states for event in outline.events_of(state.name)}
    return list((here | {name: event for name, event in everywhere.items() if name not in here}).values())


def _levers(version: MachineVersion | None, instance: Instance, tried: EventForm | None) -> list[dict[str, Any]]:
    """A form for each event, all on the version shown; the one that was tried keeps what was entered."""
    outline = version.outline if version else None
    here = {event.name for state in instance.configuration for event in outline.events_of(state)} if outline else set()
    levers = []
    for number, event in enumerate(_events(outline, instance)):
        form = EventForm(event, number=number, initial={"event": event.name, "expect": instance.version})
        if tried is not None and tried.data.get("event") == event.name:
            form = _retried(tried, event, number, instance)
        levers.append({"event": event, "form": form, "listens": event.name in here})
    return levers


def _retried(tried: EventForm, event: EventOutline, number: int, instance: Instance) -> EventForm:
    data = tried.data.copy()
    data["expect"] = str(instance.version)
    form = EventForm(event, number=number, data=data)
    form._errors = tried.errors
    return form
