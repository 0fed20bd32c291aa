"""One version of a machine as pages need it: its outline, its drawing, and its events as forms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dashboard.pages.stamps import Stamps
from machines import diagrams, publishing
from machines.engine.definitions import FieldOutline, Outline, outline
from machines.engine.errors import UnknownMachine
from machines.forms import TypedForm
from machines.models import Machine, MachineVersion

VAST = 1300  # pixels
KEPT = 128  # outlines read once and kept: a published version never changes


@dataclass(frozen=True, slots=True)
class Field:
    """A declared data field with the value an instance has, or ``present`` False for one that is not set."""

    name: str
    description: str
    present: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """``index`` maps states, transitions and queues to the ids of their parts in ``svg``."""

    machine: str
    version: int
    outline: Outline
    svg: str
    index: dict[str, dict[str, str]]
    fingerprint: str

    @property
    def is_vast(self) -> bool:
        """Whether the drawing is too wide to be read when it is made to fit a page."""
        width = re.search(r'<svg [^>]*\bwidth="(\d+)', self.svg)
        return width is not None and int(width[1]) > VAST

    @property
    def stamps(self) -> Stamps:
        return Stamps(self.outline.data)

    def fields(self, data: Mapping[str, Any]) -> list[Field]:
        return [
            Field(field.name, field.description, field.name in data, data.get(field.name))
            for field in self.outline.data
        ]

    def event_names(self, configuration: Iterable[str]) -> list[str]:
        """Events the current states listen to, in the order of the definition, then every other known event.

        A state that listens to a pattern (``*``, ``door.*``) takes events nobody can list: they are "" here.
        """
        here = [name for state in configuration for name in self._listened(state)]
        known = [*self.outline.events, *(name for state in self.outline.states for name in self._listened(state.name))]
        return list(dict.fromkeys([*here, *(name for name in known if name)]))

    def event_description(self, name: str) -> str:
        event = self.outline.events.get(name)
        return event.description if event else ""

    def transition_description(self, id: str) -> str:
        found = (t for state in self.outline.states for t in state.transitions if t.id == id)
        return next((transition.description for transition in found), "")

    def payload_form(
        self, event: str, configuration: Iterable[str] | None, *, id_prefix: str, data: Mapping[str, Any] | None = None
    ) -> TypedForm:
        """The form for an event's payload: declared fields, or those its guards and actions read. ``configuration``
        None asks for the fields of every state: what a posted form may hold, wherever the instance went meanwhile."""
        declared = self.outline.events.get(event)
        if declared is not None and declared.fields is not None:
            return TypedForm(declared.fields, id_prefix=id_prefix, data=data)
        states = [state.name for state in self.outline.states] if configuration is None else configuration
        inferred = {field.name: field for state in states for field in self._listened(state).get(event, ())}
        return TypedForm(inferred.values(), is_open=True, id_prefix=id_prefix, data=data)

    def _listened(self, state: str) -> dict[str, Sequence[FieldOutline]]:
        """Event -> its fields, for one state; nothing for a state of another version."""
        found = self.outline.state(state)
        listened = {event.name: event.fields or () for event in self.outline.events_of(state)}
        patterns = (event for transition in found.transitions for event in transition.events) if found else ()
        return listened | ({"": ()} if any(event.endswith("*") for event in patterns) else {})


def plan(machine: str, version: int) -> Plan:
    """Raises UnknownMachine. A version that a script published straight into Redis is taken in first."""
    found = _stored(machine, version)
    text = json.dumps(found.definition)
    fingerprint = f"{found.digest}-{diagrams.DRAWING}"
    return Plan(machine, version, _outline(text), found.svg, _index(text), fingerprint)


def lost(known: Iterable[Any]) -> list[str]:
    """Machines that SQL knows and Redis does not have; ``known`` are those it has, by ``name``."""
    held = {one.name for one in known}
    return [name for name in Machine.objects.order_by("name").values_list("name", flat=True) if name not in held]


def _stored(machine: str, version: int) -> MachineVersion:
    versions = MachineVersion.objects.filter(machine__name=machine, number=version)
    found = versions.first()
    if found is None:
        publishing.adopt(machine)
        found = versions.first()
    if found is None:
        raise UnknownMachine(machine, version=version)
    return found


@lru_cache(maxsize=KEPT)
def _outline(text: str) -> Outline:
    return outline(json.loads(text))


@lru_cache(maxsize=KEPT)
def _index(text: str) -> dict[str, dict[str, str]]:
    return diagrams.index(_outline(text))
