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
from machines.engine.definitions import FieldOutline, Outline, TransitionOutline, outline
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
class Place:
    """An active leaf state. ``around``: the states it stands in, from the outside in."""

    name: str
    around: tuple[str, ...] = ()
    region: str = ""

    @property
    def path(self) -> str:
        return " › ".join([*self.around, self.name])


@dataclass(frozen=True, slots=True)
class Plan:
    """``index`` maps states, transitions and queues to the ids of their parts in ``svg``.

    ``folded``: the drawing shows the top level alone; ``can_fold``: that there is such a drawing.
    """

    machine: str
    version: int
    outline: Outline
    svg: str
    index: dict[str, dict[str, Any]]
    fingerprint: str
    folded: bool = False
    can_fold: bool = False

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
        here = self._listened(list(configuration))
        known = [*self.outline.events, *self._listened([state.name for state in self.outline.states])]
        return list(dict.fromkeys([*here, *(name for name in known if name)]))

    def event_description(self, name: str) -> str:
        event = self.outline.events.get(name)
        return event.description if event else ""

    def listened(self, configuration: Iterable[str]) -> frozenset[str]:
        """The events that some active state listens for."""
        return frozenset(self._listened(list(configuration)))

    @property
    def is_nested(self) -> bool:
        return any(state.parent for state in self.outline.states)

    def transition(self, id: str) -> TransitionOutline | None:
        return next((t for state in self.outline.states for t in state.transitions if t.id == id), None)

    def places(self, configuration: Iterable[str]) -> list[Place]:
        """Where an instance stands; a state of another version stands in nothing."""
        return [self._place(name) for name in configuration]

    def _place(self, name: str) -> Place:
        lineage = [state for state in self.outline.lineage(name)[1:] if state.name != self.outline.root]
        parallel = {state.name for state in self.outline.states if state.type == "parallel"}
        region = next((state.name for state in self.outline.lineage(name) if state.parent in parallel), "")
        return Place(name, tuple(state.name for state in reversed(lineage)), "" if region == name else region)

    def delay_of(self, event: str) -> str:
        """How long a state waits before this event of its own; empty for any other event."""
        found = (t.delay for state in self.outline.states for t in state.transitions if event in t.events)
        return next((delay for delay in found if delay), "")

    def payload_form(
        self, event: str, configuration: Iterable[str] | None, *, id_prefix: str, data: Mapping[str, Any] | None = None
    ) -> TypedForm:
        """The form for an event's payload: declared fields, or those its guards and actions read. ``configuration``
        None asks for the fields of every state: what a posted form may hold, wherever the instance went meanwhile."""
        declared = self.outline.events.get(event)
        if declared is not None and declared.fields is not None:
            return TypedForm(declared.fields, id_prefix=id_prefix, data=data)
        states = [state.name for state in self.outline.states] if configuration is None else configuration
        inferred = self._listened(list(states)).get(event, ())
        return TypedForm(inferred, is_open=True, id_prefix=id_prefix, data=data)

    def _listened(self, states: list[str]) -> dict[str, Sequence[FieldOutline]]:
        """Event -> its fields, for these states and those around them; nothing for a state of another version."""
        active = {above.name: above for state in states for above in self.outline.lineage(state)}
        listened = {event.name: event.fields or () for event in self.outline.events_of(states)}
        heard = (t for state in active.values() for t in state.transitions if t.cause == "on")
        return listened | ({"": ()} if any(_is_open(event) for t in heard for event in t.events) else {})


def _is_open(descriptor: str) -> bool:
    """Whether it takes events from outside that nobody can list."""
    return descriptor.endswith("*") and not descriptor.startswith(("done.", "error."))


def plan(machine: str, version: int, *, folded: bool = False) -> Plan:
    """Raises UnknownMachine. A version that a script published straight into Redis is taken in first.

    ``folded`` asks for the drawing of the top level, where there is one.
    """
    found = _stored(machine, version)
    text = json.dumps(found.definition)
    whole, fingerprint = _outline(text), f"{found.digest}-{diagrams.DRAWING}"
    can_fold = diagrams.can_fold(whole)
    if folded and can_fold:
        svg, index = _top(text, diagrams.DRAWING)
        return Plan(machine, version, whole, svg, index, f"{fingerprint}-top", folded=True, can_fold=True)
    return Plan(machine, version, whole, found.svg, _index(text), fingerprint, can_fold=can_fold)


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
def _index(text: str) -> dict[str, dict[str, Any]]:
    return diagrams.index(_outline(text))


@lru_cache(maxsize=KEPT)
def _top(text: str, way: int) -> tuple[str, dict[str, dict[str, Any]]]:
    """The top level is small: it is laid out in milliseconds, once in each process. ``way``: how diagrams are drawn."""
    whole = _outline(text)
    return diagrams.draw(whole, top=True).svg, diagrams.index(whole, top=True)
