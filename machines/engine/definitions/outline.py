"""The outline of a definition: states, transitions, events and actions in the form that diagrams, pages and forms
use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from machines.engine import limits
from machines.engine.expressions.source import Expression, UseKind

from .approval_terms import ApprovalTerms
from .fields import ANY
from .model import (
    MISSING,
    Action,
    Case,
    Event,
    Field,
    Invoke,
    Limit,
    Machine,
    State,
    Transition,
    Value,
    Work,
    flatten_actions,
)
from .program import collect_feeds

Record = TypeVar("Record")


def describe_action(action: Action) -> str:
    """Describe an action in a line: ``failed = failed + 1``, ``unset expires``, ``enqueue mail on outbox``, ``send
    late after 30s``."""
    value = action.value.text if action.value else ""
    name = action.computed.text if action.computed else action.name
    if action.verb == "set":
        return f"{name} = {value}"
    if action.verb == "append":
        return f"append {value} to {name}"
    if action.verb == "enqueue":
        return f"enqueue {action.src}" + (f" on {name}" if name != action.src else "") + _describe_delay(action)
    if action.verb in ("raise", "emit"):
        return f"{action.verb} {name} {value}".rstrip()
    if action.verb == "send":
        return _describe_send(action, name, value)
    if action.verb == "foreach":
        return f"for {name} in {value}: {_join_actions(action.cases[0].actions)}"
    if action.verb == "block":
        return _join_actions(action.cases[0].actions)
    if action.verb == "if":
        return " ".join(_case(case, position) for position, case in enumerate(action.cases))
    return f"{action.verb} {name or value}"


def _describe_send(action: Action, name: str, value: str) -> str:
    sending = action.sending
    to = f" to {sending.to.text}" if sending and sending.to else ""
    delay = f" after {sending.delay.text}" if sending and sending.delay else ""
    return f"send {name} {value}".rstrip() + to + delay


def _describe_delay(action: Action) -> str:
    return f" after {action.work.delay.text}" if action.work and action.work.delay else ""


def _case(case: Case, position: int) -> str:
    if case.guard is None:
        return f"else: {_join_actions(case.actions)}".rstrip()
    word = "elif" if position else "if"
    return f"{word} {case.guard.expression.text}: {_join_actions(case.actions)}"


def _join_actions(actions: Iterable[Action]) -> str:
    return "; ".join(describe_action(action) for action in actions)


Compared = dict[str, tuple[str, ...]]
"""Field -> types of what expressions compare it with: ``number``, ``string``, ``boolean``, and so on."""
NO_WORK = Work(attempts=0, backoff=0, lease=0)  # of an invoke of a machine


@dataclass(frozen=True, slots=True)
class FieldOutline:
    """A field. ``types`` are JSON Schema's names or ``("any",)``. ``initial`` is None where there is none;
    ``compared``: the types of what expressions compare it with, as far as they are known."""

    name: str
    types: tuple[str, ...] = ANY
    description: str = ""
    initial: Any = None
    required: bool = False
    sensitive: bool = False
    compared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventOutline:
    """An event. ``fields`` is None when the definition does not declare the payload.

    In the result of ``Outline.events_of`` such an event has the fields that its guards and actions read, and ``open``
    says that other fields are accepted as well.
    """

    name: str
    description: str = ""
    fields: tuple[FieldOutline, ...] | None = None
    open: bool = False


@dataclass(frozen=True, slots=True)
class InvokeOutline:
    """An invoke. ``backoff``, ``lease`` and ``timeout`` (0: none) in ms. ``machine``: the child's machine, or its
    expression; else empty. ``priority``, ``group``, ``weight``, ``delay`` and
    ``unique`` are texts, empty for the default."""

    id: str
    src: str
    queue: str
    input: str
    attempts: int
    backoff: int
    lease: int
    machine: str = ""
    autoforward: bool = False
    timeout: int = 0
    jitter: bool = True
    stop: tuple[str, ...] = ()
    priority: str = ""
    group: str = ""
    weight: str = ""
    delay: str = ""
    unique: str = ""


@dataclass(frozen=True, slots=True)
class LimitOutline:
    """The limits of a queue. ``concurrency`` is None and ``rate`` ("100/s") empty for no limit. ``groups``: those of
    each group."""

    concurrency: int | None
    rate: str
    groups: LimitOutline | None = None


EAGER = ("always", "state done")
"""Causes of transitions that a step takes by itself."""


@dataclass(frozen=True, slots=True)
class TransitionOutline:
    """A transition. ``target`` is None when the state is not left; ``events`` is empty for ``always``.

    ``reads`` are the payload fields its guard and actions use, in order, ``data_reads`` the data fields. ``cause`` is
    ``on``, ``done``, ``error``, ``state done``, ``after`` or ``always``; ``delay`` is the text of a timer's delay.
    ``allow``: groups of people who may send its event, empty for anyone.
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
    targets: tuple[str, ...] = ()
    delay: str = ""
    cause: str = "on"
    allow: tuple[str, ...] = ()
    data_reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateOutline:
    """A state. ``transitions``: those with events in document order, then those of ``always``.

    ``type`` is ``atomic``, ``final``, ``compound``, ``parallel`` or ``history``, and ``history`` then ``shallow`` or
    ``deep``. ``path`` is made of the keys from the top; ``depth`` counts its ancestors. ``initial`` is what is entered
    by default, for a history state without a memory. ``sla``: ms an instance may be in it by its service level, 0 for
    none.
    """

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
    parent: str | None = None
    path: str = ""
    depth: int = 0
    history: str = ""
    initial: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    output: str = ""
    sla: int = 0

    @property
    def is_leaf(self) -> bool:
        """Tell whether an instance can rest in it, and is counted there."""
        return self.type in ("atomic", "final")


@dataclass(frozen=True)
class Outline:
    """The outline of a machine. ``events`` are the declared events, ``queues`` all queues it uses, in document order,
    ``limits`` the declared limits of queues.

    ``root`` is the name of the state that stands for the machine itself, if any: the first of ``states``. ``initial``
    is the first state that is entered; ``index``: data fields by which instances are found; ``approval``: what needs a
    second person, a repair's name or ``fire:<event>``, and ``approvers`` the terms of these; ``accepts``: machines that
    may send to it, None where the definition does not say. ``eager_reads``: data fields that decide or compute what a
    step takes further by itself: ``always``, raised events, ends of states, actions of states. ``compared``: descriptor
    of events -> what fields of their payloads are compared with, in any state; "" for data fields.
    """

    id: str
    description: str
    initial: str
    states: tuple[StateOutline, ...]
    data: tuple[FieldOutline, ...]
    events: dict[str, EventOutline]
    queues: tuple[str, ...]
    root: str | None = None
    output: str = ""
    limits: dict[str, LimitOutline] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    approval: tuple[str, ...] = ()
    approvers: dict[str, ApprovalTerms] = field(default_factory=dict)
    accepts: tuple[str, ...] | None = None
    eager_reads: tuple[str, ...] = ()
    compared: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)

    def list_data_reads(self, event: str = "") -> set[str]:
        """List the data fields that decide or compute what an event does, in whatever state; without an event, those of
        what any step may take further."""
        taken = (each for state in self.states for each in state.transitions)
        matching = (each for each in taken if event and any(is_match(name, event) for name in each.events))
        return {*self.eager_reads, *(name for each in matching for name in each.data_reads)}

    @cached_property
    def _by_name(self) -> dict[str, StateOutline]:
        return {state.name: state for state in self.states}

    def state(self, name: str) -> StateOutline | None:
        return self._by_name.get(name)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """List the states an instance can be counted in, in document order."""
        return tuple(state.name for state in self.states if state.is_leaf)

    def leaves_of(self, name: str) -> tuple[str, ...]:
        """List the leaves inside a state, in document order; a leaf stands for itself; empty for an unknown state."""
        state = self._by_name.get(name)
        if state is None or state.type == "history":
            return ()
        if state.is_leaf:
            return (name,)
        return tuple(leaf for child in state.children for leaf in self.leaves_of(child))

    def lineage(self, name: str) -> list[StateOutline]:
        """List a state and its ancestors, innermost first; empty for an unknown one."""
        found: list[StateOutline] = []
        state = self._by_name.get(name)
        while state is not None:
            found.append(state)
            state = self._by_name.get(state.parent) if state.parent else None
        return found

    def sum_counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Compute the instances in each state from those in each leaf.

        An instance is in every region of a parallel state at once, so one region counts them all.
        """
        result = {state.name: 0 for state in self.states}
        for state in reversed(self.states):  # children come after their parents
            if state.is_leaf:
                result[state.name] = counts.get(state.name, 0)
                continue
            regions = [child for child in state.children if self._by_name[child].type != "history"]
            counted = regions[:1] if state.type == "parallel" else regions
            result[state.name] = sum(result[child] for child in counted)
        return result

    def events_of(self, configuration: str | Collection[str]) -> list[EventOutline]:
        """List the external events that active states listen for, innermost first; empty for unknown states.

        ``configuration`` is one state or several; their ancestors listen too. A pattern (``*``, ``door.*``) stands for
        the declared events it matches.
        """
        names = [configuration] if isinstance(configuration, str) else configuration
        active = {state.name: state for name in names for state in self.lineage(name)}
        listening = [transition for state in active.values() for transition in state.transitions]
        found = dict.fromkeys(name for t in listening for event in t.events for name in self._list_events(event, t))
        return [self._with_fields(name, listening) for name in found]

    def _list_events(self, descriptor: str, transition: TransitionOutline) -> Iterable[str]:
        if transition.cause not in ("on", "always") or limits.is_reserved_event(descriptor):
            return ()
        if descriptor == "*" or descriptor.endswith(".*"):
            return [name for name in self.events if is_match(descriptor, name)]
        return (descriptor,)

    def find_compared(self, event: str) -> Compared:
        """Return what fields of an event's payload are compared with, in whatever state it comes."""
        return _match_compared(self.compared, event)

    def _with_fields(self, name: str, transitions: Iterable[TransitionOutline]) -> EventOutline:
        declared = self.events.get(name, EventOutline(name))
        if declared.fields is not None:
            return declared
        listening = [t for t in transitions if any(is_match(descriptor, name) for descriptor in t.events)]
        names = dict.fromkeys(read for transition in listening for read in transition.reads)
        compared = self.find_compared(name)
        fields = tuple(FieldOutline(read, compared=compared.get(read, ())) for read in names)
        return EventOutline(name, declared.description, fields, open=True)


FIRE = "fire:"


def is_match(descriptor: str, event: str) -> bool:
    """Tell whether a descriptor matches an event (SCXML 3.12.1): equal, or the event begins with the descriptor and
    a dot."""
    prefix = descriptor.removesuffix(".*")
    return descriptor == "*" or event == prefix or event.startswith(f"{prefix}.")


def _match_compared(compared: Mapping[str, Compared], event: str) -> Compared:
    found: dict[str, set[str]] = {}
    for descriptor, some in compared.items():
        for name, types in some.items() if descriptor and is_match(descriptor, event) else ():
            found.setdefault(name, set()).update(types)
    return {name: tuple(sorted(types)) for name, types in found.items()}


def covers_action(named: str, action: str) -> bool:
    """Tell whether an entry of ``approval`` is about an action. ``fire:door`` covers ``fire:door.open`` too, as a
    transition on ``door`` does."""
    if action.startswith(FIRE) and named.startswith(FIRE):
        return is_match(named.removeprefix(FIRE), action.removeprefix(FIRE))
    return named == action


def _copy(kind: type[Record], *parts: Any, **given: Any) -> Record:
    """Make a record of the outline. What is not ``given`` is what the parts of the model have under the same names; of
    an expression its text."""
    for name in (one.name for one in fields(kind) if one.name not in given):  # type: ignore[arg-type]
        value = next((getattr(part, name) for part in parts if hasattr(part, name)), None)
        if value is not None:
            given[name] = value.text if isinstance(value, Value) else value
    return kind(**given)


def build_outline(machine: Machine, compared: dict[str, Compared]) -> Outline:
    """Build it. ``compared``: as the outline has it."""
    return _copy(
        Outline,
        machine,
        initial=machine.start.targets[0] if machine.start.targets else machine.root or "",
        states=tuple(_state(state, machine) for state in machine.states.values()),
        data=tuple(_field(field, compared.get("", {})) for field in machine.fields.values()),
        events={event.name: _event(event, compared) for event in machine.events.values()},
        queues=tuple(collect_feeds(machine)),
        limits={queue: _limit(limit) for queue, limit in machine.limits.items()},
        approval=tuple(machine.approval),
        accepts=None if machine.accepts is None else tuple(machine.accepts),
        eager_reads=_list_eager_reads(machine),
        compared=compared,
    )


def _state(state: State, machine: Machine) -> StateOutline:
    return _copy(
        StateOutline,
        state,
        type=state.kind,
        entry=tuple(describe_action(action) for action in state.entry),
        exit=tuple(describe_action(action) for action in state.exit),
        invokes=tuple(_invoke(invoke) for invoke in state.invokes),
        transitions=tuple(_transition(transition, state.name) for transition in state.all_transitions),
        enqueues=tuple(dict.fromkeys(action.name for action in state.actions if action.verb == "enqueue")),
        path=".".join(state.keys),
        depth=len(machine.lineage(state.name)) - 1,
        history=("deep" if state.deep else "shallow") if state.kind == "history" else "",
        initial=_list_entered(state, machine),
    )


def _list_entered(state: State, machine: Machine) -> tuple[str, ...]:
    if state.kind == "parallel":
        return tuple(child for child in state.children if machine.states[child].kind != "history")
    return state.start.targets if state.start else ()


def _transition(transition: Transition, source: str) -> TransitionOutline:
    return _copy(
        TransitionOutline,
        transition,
        source=source,
        target=transition.target,
        guard_text=transition.guard.expression.text if transition.guard else None,
        actions=tuple(describe_action(action) for action in transition.actions),
        reads=_reads(transition, "payload"),
        data_reads=_reads(transition, "data"),
    )


def _reads(transition: Transition, kind: UseKind) -> tuple[str, ...]:
    expressions = [transition.guard.expression] if transition.guard else []
    return _names_in([*expressions, *_expressions_of(transition.actions)], kind)


def _expressions_of(actions: Iterable[Action]) -> list[Expression]:
    return [expression for action in flatten_actions(actions) for _, expression in action.expressions]


def _names_in(expressions: Iterable[Expression], kind: UseKind) -> tuple[str, ...]:
    return tuple(dict.fromkeys(use.name for each in expressions for use in each.uses if use.kind == kind))


def _list_eager_reads(machine: Machine) -> tuple[str, ...]:
    states = list(machine.states.values())
    raised = [action for state in states for action in state.actions if action.verb in ("raise", "send")]
    names = [action.name for action in raised]
    found = dict.fromkeys(name for state in states for name in _names_in(_expressions_of(state.own_actions), "data"))
    for transition in (each for state in states for each in state.all_transitions):
        inner = any(is_match(event, name) for event in transition.events for name in names)
        if inner or transition.cause in EAGER or any(action.computed for action in raised):
            found |= dict.fromkeys(_reads(transition, "data"))
    return tuple(found)


def _invoke(invoke: Invoke) -> InvokeOutline:
    machine = invoke.computed.text if invoke.computed else invoke.machine
    given = invoke.input.text if invoke.input else ""
    return _copy(InvokeOutline, invoke, invoke.work or NO_WORK, input=given, machine=machine)


def _limit(limit: Limit) -> LimitOutline:
    return LimitOutline(
        limit.concurrency, str(limit.rate) if limit.rate else "", _limit(limit.groups) if limit.groups else None
    )


def _field(field: Field, compared: Compared) -> FieldOutline:
    initial = None if field.initial is MISSING else field.initial
    return _copy(FieldOutline, field, initial=initial, compared=compared.get(field.name, ()))


def _event(event: Event, compared: Mapping[str, Compared]) -> EventOutline:
    known = {} if event.fields is None else _match_compared(compared, event.name)
    fields = None if event.fields is None else tuple(_field(field, known) for field in event.fields.values())
    return EventOutline(event.name, event.description, fields)
