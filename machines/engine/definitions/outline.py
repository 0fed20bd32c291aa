"""A definition in a form to read and draw: what diagrams, pages and forms are made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .model import MISSING, Action, Event, Field, Invoke, Machine, State, Transition
from .program import queues_of
from .types import ANY


@dataclass(frozen=True, slots=True)
class FieldOutline:
    """``types`` are JSON Schema's names or ``("any",)``. ``initial`` is None where there is none."""

    name: str
    types: tuple[str, ...] = ANY
    description: str = ""
    initial: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class EventOutline:
    """``fields`` is None when the definition does not declare the payload.

    In what ``Outline.events_of`` gives, such an event has the fields its guards and actions read,
    and ``open`` says that others are taken as well.
    """

    name: str
    description: str = ""
    fields: tuple[FieldOutline, ...] | None = None
    open: bool = False


@dataclass(frozen=True, slots=True)
class InvokeOutline:
    """``backoff`` and ``lease`` in ms."""

    id: str
    src: str
    queue: str
    input: str
    attempts: int
    backoff: int
    lease: int


@dataclass(frozen=True, slots=True)
class TransitionOutline:
    """``target`` is None when the state is not left; ``events`` is empty for ``always``.

    ``reads`` are the payload fields its guard and actions use, in the order they occur.
    """

    id: str
    events: tuple[str, ...]
    source: str
    target: str | None
    guard_text: str | None
    actions: tuple[str, ...]
    reenter: bool
    description: str
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateOutline:
    """``transitions``: those with events in document order, then those of ``always``."""

    name: str
    index: int
    type: str
    description: str
    tags: tuple[str, ...]
    entry: tuple[str, ...]
    exit: tuple[str, ...]
    invokes: tuple[InvokeOutline, ...]
    transitions: tuple[TransitionOutline, ...]
    enqueues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """``events`` holds what the definition declares, ``queues`` every queue it feeds, in document order."""

    id: str
    description: str
    initial: str
    states: tuple[StateOutline, ...]
    data: tuple[FieldOutline, ...]
    events: dict[str, EventOutline]
    queues: tuple[str, ...]

    def state(self, name: str) -> StateOutline | None:
        return next((state for state in self.states if state.name == name), None)

    def events_of(self, state: str) -> list[EventOutline]:
        """The events from outside that a state listens for, in document order; none for an unknown state.

        A pattern (``*``, ``door.*``) stands for the declared events it matches.
        """
        found = self.state(state)
        listened: dict[str, EventOutline] = {}
        for transition in found.transitions if found else ():
            for descriptor in transition.events:
                for name in self._named(descriptor):
                    listened[name] = self._with_fields(name, found.transitions if found else ())
        return list(listened.values())

    def _named(self, descriptor: str) -> Iterable[str]:
        if descriptor.startswith(("done.", "error.")):
            return ()
        if descriptor == "*" or descriptor.endswith(".*"):
            return [name for name in self.events if matches(descriptor, name)]
        return (descriptor,)

    def _with_fields(self, name: str, transitions: Iterable[TransitionOutline]) -> EventOutline:
        declared = self.events.get(name, EventOutline(name))
        if declared.fields is not None:
            return declared
        listening = [t for t in transitions if any(matches(descriptor, name) for descriptor in t.events)]
        names = dict.fromkeys(read for transition in listening for read in transition.reads)
        return EventOutline(name, declared.description, tuple(FieldOutline(read) for read in names), open=True)


def matches(descriptor: str, event: str) -> bool:
    """SCXML 3.12.1: equal, or the event begins with the descriptor and a dot."""
    prefix = descriptor.removesuffix(".*")
    return descriptor == "*" or event == prefix or event.startswith(f"{prefix}.")


def outline_of(machine: Machine) -> Outline:
    return Outline(
        id=machine.id,
        description=machine.description,
        initial=machine.initial,
        states=tuple(_state(state) for state in machine.states.values()),
        data=tuple(_field(field) for field in machine.fields.values()),
        events={event.name: _event(event) for event in machine.events.values()},
        queues=tuple(queues_of(machine)),
    )


def _state(state: State) -> StateOutline:
    return StateOutline(
        name=state.name,
        index=state.index,
        type="final" if state.final else "atomic",
        description=state.description,
        tags=state.tags,
        entry=tuple(action_text(action) for action in state.entry),
        exit=tuple(action_text(action) for action in state.exit),
        invokes=tuple(_invoke(invoke) for invoke in state.invokes),
        transitions=tuple(_transition(transition, state.name) for transition in state.all_transitions),
        enqueues=tuple(dict.fromkeys(action.name for action in state.actions if action.verb == "enqueue")),
    )


def _transition(transition: Transition, source: str) -> TransitionOutline:
    return TransitionOutline(
        id=transition.id,
        events=transition.events,
        source=source,
        target=transition.target,
        guard_text=transition.guard.expression.text if transition.guard else None,
        actions=tuple(action_text(action) for action in transition.actions),
        reenter=transition.reenter,
        description=transition.description,
        reads=_reads(transition),
    )


def _reads(transition: Transition) -> tuple[str, ...]:
    expressions = [transition.guard.expression] if transition.guard else []
    for action in transition.actions:
        expressions += [expression for _, expression in action.value.parts] if action.value else []
    return tuple(dict.fromkeys(use.name for e in expressions for use in e.uses if use.kind == "payload"))


def action_text(action: Action) -> str:
    """One action as people read it: ``failed = failed + 1``, ``unset expires``, ``enqueue mail on outbox``."""
    value = action.value.text if action.value else ""
    if action.verb == "set":
        return f"{action.name} = {value}"
    if action.verb == "append":
        return f"append {value} to {action.name}"
    if action.verb == "enqueue":
        return f"enqueue {action.src}" + (f" on {action.name}" if action.name != action.src else "")
    if action.verb in ("raise", "emit"):
        return f"{action.verb} {action.name} {value}".rstrip()
    return f"{action.verb} {action.name or value}"


def _invoke(invoke: Invoke) -> InvokeOutline:
    text = invoke.input.text if invoke.input else ""
    return InvokeOutline(invoke.id, invoke.src, invoke.queue, text, invoke.attempts, invoke.backoff, invoke.lease)


def _field(field: Field) -> FieldOutline:
    initial = None if field.initial is MISSING else field.initial
    return FieldOutline(field.name, field.types, field.description, initial, field.required)


def _event(event: Event) -> EventOutline:
    fields = None if event.fields is None else tuple(_field(field) for field in event.fields.values())
    return EventOutline(event.name, event.description, fields)
