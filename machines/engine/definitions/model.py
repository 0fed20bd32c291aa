"""A definition as it was understood: what checks walk over, and what the program and the outline are made of.

Everything keeps its path, so that whoever finds something can say where.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..expressions import Expression, Node
from .path import Path

Verb = Literal["set", "unset", "append", "raise", "enqueue", "emit", "log"]
Cause = Literal["on", "done", "error", "always"]


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, or JSON with expressions inside. ``parts``: the expressions, each with its path."""

    tree: Node
    text: str
    parts: tuple[tuple[Path, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """``name`` is the field, event, queue or message type; ``keys`` those of the data of a raise."""

    verb: Verb
    path: Path
    name: str = ""
    src: str = ""
    value: Value | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    expression: Expression
    path: Path


@dataclass(frozen=True, slots=True)
class Transition:
    """``target`` is a state's name, or None: the state is not left. ``events`` are descriptors; none for ``always``."""

    id: str
    cause: Cause
    events: tuple[str, ...]
    target: str | None
    guard: Guard | None
    actions: tuple[Action, ...]
    reenter: bool
    description: str
    path: Path

    @property
    def always_holds(self) -> bool:
        return self.guard is None

    @property
    def never_holds(self) -> bool:
        return self.guard is not None and self.guard.expression.tree == ["because", "False", ["false"]]


@dataclass(frozen=True, slots=True)
class Invoke:
    """``backoff`` and ``lease`` in ms."""

    id: str
    src: str
    queue: str
    input: Value | None
    attempts: int
    backoff: int
    lease: int
    path: Path


@dataclass(frozen=True, slots=True)
class State:
    name: str
    index: int  # from 1, in document order
    final: bool
    description: str
    tags: tuple[str, ...]
    entry: tuple[Action, ...]
    exit: tuple[Action, ...]
    transitions: tuple[Transition, ...]
    always: tuple[Transition, ...]
    invokes: tuple[Invoke, ...]
    path: Path

    @property
    def all_transitions(self) -> tuple[Transition, ...]:
        return self.transitions + self.always

    @property
    def actions(self) -> tuple[Action, ...]:
        """Everything it may do: entry, exit and on each of its transitions."""
        return self.entry + self.exit + tuple(a for t in self.all_transitions for a in t.actions)


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Field:
    """A data field or a field of a payload. ``types``: JSON Schema's names, or ``("any",)``."""

    name: str
    types: tuple[str, ...]
    path: Path
    initial: Any = MISSING
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """``fields`` is None when the payload is not declared: anything goes."""

    name: str
    description: str
    fields: dict[str, Field] | None
    path: Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The whole of one definition; ``initial`` is empty where the definition does not say."""

    id: str
    description: str
    initial: str
    history: int
    fields: dict[str, Field]
    events: dict[str, Event]
    states: dict[str, State] = field(default_factory=dict)
