"""The model of a definition: what the checks examine, and what the program and the outline are built from.

Every part keeps its path, so that a finding can name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from machines.engine import limits
from machines.engine.expressions import Expression, Node
from machines.engine.rates import QueueRate

from .approval_terms import ApprovalTerms
from .findings import Path

Verb = Literal[
    "set", "unset", "append", "raise", "send", "cancel", "enqueue", "emit", "log", "if", "foreach", "block"
]  # fmt: skip
Cause = Literal["on", "done", "error", "state done", "after", "always"]
Kind = Literal["atomic", "final", "compound", "parallel", "history"]
Located = tuple[Path, Expression]


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, or JSON with expressions inside. ``parts``: the expressions, each with its path."""

    tree: Node
    text: str
    parts: tuple[Located, ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    expression: Expression
    path: Path


@dataclass(frozen=True, slots=True)
class Sending:
    """The receiver and delay of a ``send``; event and data are the action's own. ``computed`` is the expression of
    an id."""

    to: Value | None = None
    delay: Value | None = None
    id: str = ""
    computed: Value | None = None
    idlocation: str = ""
    type: Value | None = None

    @property
    def values(self) -> tuple[Value | None, ...]:
        return self.to, self.delay, self.computed, self.type


@dataclass(frozen=True, slots=True)
class Work:
    """How a job is worked on. ``backoff``, ``lease`` and ``timeout`` in ms; a timeout of 0 is none.

    ``stop``: kinds of exceptions that are not retried; ``debounce``: ms, 0 for none. ``priority``, ``group``,
    ``weight``, ``delay`` and ``unique`` are None for the default.
    """

    attempts: int = limits.DEFAULT_ATTEMPTS
    backoff: int = limits.DEFAULT_BACKOFF
    jitter: bool = True
    stop: tuple[str, ...] = ()
    lease: int = limits.DEFAULT_LEASE
    timeout: int = 0
    priority: Value | None = None
    group: Value | None = None
    weight: Value | None = None
    delay: Value | None = None
    unique: Value | None = None
    debounce: int = 0

    @property
    def values(self) -> tuple[Value | None, ...]:
        return self.priority, self.group, self.weight, self.delay, self.unique


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a queue, or of each group of it: jobs at a time (None: any number), and a rate. ``groups``: those
    of each group."""

    concurrency: int | None = None
    rate: QueueRate | None = None
    groups: Limit | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One branch of an action that holds others. The guard is None for an else, the body of a loop and a block."""

    guard: Guard | None
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """One action. ``name`` is the field, event, queue, message type or id; ``computed`` the expression in its place.

    ``keys`` are those of the data of a raise or send, ``index`` and ``name`` the fields a foreach sets, ``cases`` the
    branches of an if, foreach or block, ``work`` the options of the job of an enqueue.
    """

    verb: Verb
    path: Path
    name: str = ""
    src: str = ""
    value: Value | None = None
    keys: tuple[str, ...] = ()
    computed: Value | None = None
    sending: Sending | None = None
    index: str = ""
    cases: tuple[Case, ...] = ()
    work: Work | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """Return its own values, without those of the actions inside."""
        parts = (part.values for part in (self.sending, self.work) if part)
        found = (self.value, self.computed, *(value for values in parts for value in values))
        return tuple(value for value in found if value is not None)

    @property
    def expressions(self) -> tuple[Located, ...]:
        """Return its own expressions, guards of an ``if`` included."""
        guards = tuple((case.guard.path, case.guard.expression) for case in self.cases if case.guard)
        return guards + tuple(part for value in self.values for part in value.parts)

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the data fields it writes."""
        names = {"set": (self.name,), "unset": (self.name,), "append": (self.name,), "foreach": (self.name, self.index)}
        written = names.get(self.verb, ()) + ((self.sending.idlocation,) if self.sending else ())
        return tuple(name for name in written if name)


def flatten_actions(actions: Iterable[Action]) -> Iterator[Action]:
    """List actions and all actions inside them, in document order."""
    for action in actions:
        yield action
        for case in action.cases:
            yield from flatten_actions(case.actions)


@dataclass(frozen=True, slots=True)
class Transition:
    """One transition. ``targets`` are names of states, empty where the state is not left. ``events`` are descriptors,
    empty for ``always``.

    ``delay`` arms the timer of an ``after``; of several transitions with one delay only the first has it. ``allow``:
    the groups of people who may send its event, empty for anyone.
    """

    id: str
    cause: Cause
    events: tuple[str, ...]
    targets: tuple[str, ...]
    guard: Guard | None
    actions: tuple[Action, ...]
    reenter: bool
    description: str
    path: Path
    delay: Value | None = None
    allow: tuple[str, ...] = ()

    @property
    def target(self) -> str | None:
        """Return the first target."""
        return self.targets[0] if self.targets else None

    @property
    def always_holds(self) -> bool:
        return self.guard is None

    @property
    def never_holds(self) -> bool:
        return self.guard is not None and self.guard.expression.tree == ["because", "False", ["false"]]


@dataclass(frozen=True, slots=True)
class Invoke:
    """One invoke. ``machine`` is the name of a machine; ``computed`` an expression that gives it.

    The job of a handler has a queue and ``work``; a child machine has neither.
    """

    id: str
    src: str
    queue: str
    input: Value | None
    path: Path
    work: Work | None = None
    machine: str = ""
    computed: Value | None = None
    autoforward: bool = False
    finalize: tuple[Action, ...] = ()
    idlocation: str = ""

    @property
    def is_machine(self) -> bool:
        return not self.queue

    @property
    def parts(self) -> tuple[Located, ...]:
        values = (self.input, self.computed, *(self.work.values if self.work else ()))
        return tuple(part for value in values if value for part in value.parts)


@dataclass(frozen=True, slots=True)
class Start:
    """What is entered by default: the ``initial`` of a state, the default of a history state. ``targets`` are names."""

    targets: tuple[str, ...]
    actions: tuple[Action, ...]
    path: Path


@dataclass(frozen=True, slots=True)
class State:
    """One state. ``index`` counts from 1 in document order; ``keys`` is its path from the top; ``word`` names its
    events.

    ``start`` is the initial of a compound state and the default of a history state. ``root``: the machine itself.
    ``sla``: ms an instance may be in it by its service level, 0 for none.
    """

    name: str
    index: int
    kind: Kind
    description: str
    tags: tuple[str, ...]
    entry: tuple[Action, ...]
    exit: tuple[Action, ...]
    transitions: tuple[Transition, ...]
    always: tuple[Transition, ...]
    invokes: tuple[Invoke, ...]
    path: Path
    word: str
    keys: tuple[str, ...] = ()
    parent: str | None = None
    children: tuple[str, ...] = ()
    start: Start | None = None
    deep: bool = False
    output: Value | None = None
    root: bool = False
    sla: int = 0

    @property
    def final(self) -> bool:
        return self.kind == "final"

    @property
    def is_leaf(self) -> bool:
        """Tell whether an instance can rest in it."""
        return self.kind in ("atomic", "final")

    @property
    def done(self) -> str:
        """Return the event that says the state has ended; empty for states that do not end."""
        return f"done.state.{self.word}" if self.kind in ("compound", "parallel") else ""

    @property
    def all_transitions(self) -> tuple[Transition, ...]:
        return self.transitions + self.always

    @property
    def own_actions(self) -> tuple[Action, ...]:
        """Return its actions except those of its transitions."""
        invoked = tuple(action for invoke in self.invokes for action in invoke.finalize)
        return self.entry + self.exit + (self.start.actions if self.start else ()) + invoked

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return all its actions, actions inside actions included."""
        taken = tuple(action for transition in self.all_transitions for action in transition.actions)
        return tuple(flatten_actions(self.own_actions + taken))


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Field:
    """A data field or a field of a payload. ``types``: JSON Schema's names, or ``("any",)``. ``sensitive``: redacted
    for people without the right to reveal it."""

    name: str
    types: tuple[str, ...]
    path: Path
    initial: Any = MISSING
    description: str = ""
    required: bool = False
    sensitive: bool = False
    encrypted: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A declared event. ``fields`` is None when its payload is not declared and may be anything."""

    name: str
    description: str
    fields: dict[str, Field] | None
    path: Path


@dataclass(frozen=True, slots=True)
class Property:
    """Something that is to hold in every run. ``kind``: "never", "always" or "leads"; ``texts`` and ``trees``: its
    expression, or both of them."""

    kind: str
    texts: tuple[str, ...]
    trees: tuple[Node, ...]
    path: Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The whole of one definition. ``start`` is empty where the definition names no initial state, or all is parallel.

    ``errors`` is empty where the definition does not say; ``root`` is the name of the state that stands for the machine
    itself, if any; ``limits`` are those of queues; ``index``: fields by which instances are found; ``approval``: what
    needs a second person, and ``accepts``: the machines that may send to it (None for no such key), each with its path;
    ``approvers``: the terms of actions of ``approval``;
    ``brings``: full names of embedded machines; ``properties``: what the team states about it.
    """

    id: str
    description: str
    start: Start
    history: int
    fields: dict[str, Field]
    events: dict[str, Event]
    states: dict[str, State] = field(default_factory=dict)
    root: str | None = None
    output: Value | None = None
    errors: str = ""
    limits: dict[str, Limit] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    approval: dict[str, Path] = field(default_factory=dict)
    approvers: dict[str, ApprovalTerms] = field(default_factory=dict)
    accepts: dict[str, Path] | None = None
    brings: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()

    @property
    def encrypted(self) -> dict[str, Field]:
        """Return the encrypted fields of the data and of payloads, by name: what has the name is encrypted."""
        payloads = (event.fields or {} for event in self.events.values())
        found = (one for fields in (*payloads, self.fields) for one in fields.values() if one.encrypted)
        return {one.name: one for one in found}

    def lineage(self, name: str) -> list[State]:
        """List a state and its ancestors, innermost first; empty for an unknown one."""
        found: list[State] = []
        state = self.states.get(name)
        while state is not None and len(found) <= len(self.states):
            found.append(state)
            state = self.states.get(state.parent) if state.parent else None
        return found

    def contains(self, outer: str, inner: str) -> bool:
        """Tell whether a state is the other or an ancestor of it."""
        return any(state.name == outer for state in self.lineage(inner))

    def together(self, one: str, other: str) -> bool:
        """Tell whether both can be active at once: one inside the other, or in different regions of a parallel
        state."""
        around = {state.name for state in self.lineage(one)}
        meeting = next((state for state in self.lineage(other) if state.name in around), None)
        return meeting is not None and (meeting.name in (one, other) or meeting.kind == "parallel")

    @property
    def begun(self) -> tuple[Action, ...]:
        """Return the actions of the machine's own start; where the machine is a state itself, that state has them."""
        return () if self.root else tuple(flatten_actions(self.start.actions))

    @property
    def actions(self) -> list[Action]:
        """Return all actions in document order, those inside others included."""
        return [*self.begun, *(action for state in self.states.values() for action in state.actions)]

    @property
    def raises_errors(self) -> bool:
        """Tell whether a failing action raises ``error.execution`` and the step goes on."""
        if self.errors:
            return self.errors == "raise"
        events = (event for state in self.states.values() for t in state.transitions for event in t.events)
        return any(_is_error(event) for event in events)


def _is_error(descriptor: str) -> bool:
    words = descriptor.removesuffix(".*").split(".")
    return words[0] == "error" and words[1:2] != ["invoke"]
