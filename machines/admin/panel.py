"""The screen of one instance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

from machines.connections import get_engine
from machines.engine import Conflict, Instance, Refused, SignalboxError
from machines.models import Machine, MachineVersion
from machines.services import Actor
from machines.services.reading import redactor_of

from .levers import levers
from .payload import EventForm
from .rights import may
from .screens import drawing, instance_url, moment, screen

STEPS = 25  # of the history


@dataclass(frozen=True, slots=True)
class Field:
    """A data field, set or not."""

    name: str
    hint: str
    is_set: bool
    value: Any


def panel(
    request: HttpRequest,
    machine: Machine,
    instance: Instance,
    tried: EventForm | None = None,
    error: SignalboxError | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """``tried`` is the form that was sent and did not succeed, ``error`` what the engine said about it."""
    version = version_of(machine, instance)
    may_fire = may(request, "fire", machine.name)
    redacted = redactor_of(Actor.of(request), machine.name).of(instance.id)
    instance = redacted.instance(instance)
    steps = redacted.steps(get_engine().history(machine.name, instance.id, limit=STEPS))
    return screen(
        request,
        "instance.html",
        machine,
        instance.id,
        status=status,
        instance=instance,
        entered=moment(instance.entered),
        created=moment(instance.created),
        drawing=drawing(version, instance.configuration) if version else "",
        data=_data(version, instance),
        may_fire=may_fire,
        suspended=moment(instance.suspended) if instance.suspended else None,
        waits=_waits(version, instance),
        kin=_kin(request, instance),
        levers=levers(version, instance, tried) if may_fire else [],
        tried=tried,
        error=error,
        error_text=redacted.error(error) if error else "",
        is_conflict=isinstance(error, Conflict),
        is_refused=isinstance(error, Refused),
        candidates=redacted.explanation(error.explanation).candidates if isinstance(error, Refused) else [],
        steps=[(step, moment(step.at)) for step in steps],
    )


@dataclass(frozen=True, slots=True)
class Kin:
    """An instance that runs this one, or that it runs, as ``word`` says."""

    word: str
    machine: str
    id: str
    url: str


def _kin(request: HttpRequest, instance: Instance) -> list[Kin]:
    """Those of machines that may be seen."""
    found = [("parent", instance.parent)] if instance.parent else []
    found += [(f"child {invoke}", child) for invoke, child in instance.children.items()]
    names = [kin["machine"] for _, kin in found]
    machines = {machine.name: machine for machine in Machine.objects.filter(name__in=names)}
    return [
        Kin(word, kin["machine"], kin["id"], instance_url(machines[kin["machine"]], kin["id"]))
        for word, kin in found
        if kin["machine"] in machines and may(request, "view", kin["machine"])
    ]


def _waits(version: MachineVersion | None, instance: Instance) -> list[tuple[str, str, datetime]]:
    """What each timer is, the state that waits, and when it is due; the next one first."""
    states = version.outline.states if version else ()
    delays = {event: f"after {t.delay}" for state in states for t in state.transitions if t.delay for event in t.events}
    timers = sorted(instance.timers, key=lambda timer: timer.due)
    return [(delays.get(timer.event, timer.event), timer.state, moment(timer.due)) for timer in timers]


def version_of(machine: Machine, instance: Instance) -> MachineVersion | None:
    """The version the instance lives by; None where nobody has its definition any more."""
    try:
        return machine.version(instance.definition)
    except MachineVersion.DoesNotExist:
        return None


def _data(version: MachineVersion | None, instance: Instance) -> list[Field]:
    """Declared fields in document order, set or not; then whatever else there is."""
    hints = {field.name: field.description for field in version.outline.data} if version else {}
    names = dict.fromkeys([*hints, *instance.data])
    return [Field(name, hints.get(name, ""), name in instance.data, instance.data.get(name)) for name in names]
