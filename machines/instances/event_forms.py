"""Forms of the events that an operator may fire at an instance in the admin: the payload's fields, and those of
every step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.forms import BoundField

from machines.catalog import builtin_machines
from machines.catalog.models import MachineVersion
from machines.engine import Instance
from machines.engine.definitions import EventOutline
from machines.instances.forms import StepForm, TypedForm
from machines.people.mirrors import is_mirror, row_methods


class EventForm:
    """Two forms sent as one, so that a payload may have a field called ``reason`` too."""

    def __init__(self, outline: EventOutline, *, number: int, data: Mapping[str, Any] | None = None) -> None:
        self.outline = outline
        self.fields = TypedForm(outline.fields or (), is_open=outline.open, id_prefix=f"id_{number}", data=data)
        self.step = StepForm(data, auto_id=f"id_{number}_%s")

    def is_valid(self) -> bool:
        # Both are asked, so that every mistake is shown at once.
        return all([self.fields.is_valid(), self.step.is_valid()])

    def inputs(self) -> list[BoundField]:
        """Return those an operator sees."""
        return [*self.fields, self.step["reason"]]

    def payload(self) -> dict[str, Any]:
        """Return what was entered; a field left blank is not sent. Only after ``is_valid()``."""
        return self.fields.values()

    @property
    def expect(self) -> int:
        return self.step.cleaned_data["expect"]

    @property
    def reason(self) -> str:
        return self.step.cleaned_data["reason"]

    def blame(self, field: str | None, message: str) -> None:
        """Put an error of the engine beside the input it is about."""
        self.fields.blame(field, message)


@dataclass(frozen=True, slots=True)
class EventAction:
    """``listens`` is False for an event the current state would refuse; ``submitted`` for the one fired in vain."""

    event: EventOutline
    form: EventForm
    listens: bool
    submitted: bool = False


def list_event_actions(
    version: MachineVersion | None, instance: Instance, submitted: EventForm | None = None
) -> list[EventAction]:
    """List an action for each event of the machine, those the state listens for first. ``submitted`` keeps what was
    entered."""
    fired = submitted.outline.name if submitted else None
    return [
        EventAction(event, submitted, listens, submitted=True)
        if submitted and event.name == fired
        else EventAction(event, EventForm(event, number=number), listens)
        for number, (event, listens) in enumerate(_events(version, instance))
    ]


def fill_event_form(
    version: MachineVersion | None, instance: Instance, event: str, data: Mapping[str, Any]
) -> EventForm:
    """Return the filled form of an event; one without fields where the machine does not know the event."""
    for number, (outline, _) in enumerate(_events(version, instance)):
        if outline.name == event:
            return EventForm(outline, number=number, data=data)
    return EventForm(EventOutline(event), number=0, data=data)


def _events(version: MachineVersion | None, instance: Instance) -> list[tuple[EventOutline, bool]]:
    if version is None or version.machine.name in builtin_machines.NAMES:
        return []
    outline = version.outline
    everywhere = {event.name: event for event in outline.events_of([state.name for state in outline.states])}
    here = {event.name: event for event in outline.events_of(instance.configuration)}
    if is_mirror(version.machine.name):
        here, everywhere = (
            {name: _add_parameters(version.machine.name, event) for name, event in some.items()}
            for some in (here, everywhere)
        )
    return [(event, True) for event in here.values()] + [
        (event, False) for name, event in everywhere.items() if name not in here
    ]


def _add_parameters(machine: str, event: EventOutline) -> EventOutline:
    """Return the event with the parameters of the model's method as its payload."""
    found = row_methods().list_parameters(machine, event.name)
    return event if found is None else replace(event, fields=tuple(found[0]), open=found[1])
