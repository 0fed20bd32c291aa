"""A chart as plain Python objects: what strategies draw, the reference interprets and a definition is written from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .language import Action, Guard

LEAVES = ("atomic", "final")
HISTORIES = ("shallow", "deep")


@dataclass(eq=False)
class Transition:
    """``descriptor`` is empty for an eventless one. ``delay``: ms of the timer it waits for, then its event."""

    descriptor: str = ""
    targets: tuple[str, ...] = ()
    guard: Guard | None = None
    actions: tuple[Action, ...] = ()
    reenter: bool = False
    delay: int | None = None
    id: str = ""
    source: State | None = field(default=None, repr=False)


@dataclass(eq=False)
class State:
    """``initial`` of a history is where it leads when it remembers nothing. ``work``: it invokes a handler, whose end
    the transitions of ``worked`` wait for."""

    name: str
    kind: str = "atomic"
    children: list[State] = field(default_factory=list)
    initial: tuple[str, ...] = ()
    initial_actions: tuple[Action, ...] = ()
    on: list[Transition] = field(default_factory=list)
    work: bool = False
    worked: list[Transition] = field(default_factory=list)
    done: list[Transition] = field(default_factory=list)
    after: list[Transition] = field(default_factory=list)
    always: list[Transition] = field(default_factory=list)
    entry: tuple[Action, ...] = ()
    exit: tuple[Action, ...] = ()
    output: str = ""
    parent: State | None = field(default=None, repr=False)
    order: int = 0

    @property
    def is_leaf(self) -> bool:
        return self.kind in LEAVES

    @property
    def is_history(self) -> bool:
        return self.kind in HISTORIES

    @property
    def real_children(self) -> list[State]:
        """Those that can be active."""
        return [child for child in self.children if not child.is_history]

    @property
    def transitions(self) -> list[Transition]:
        """In document order."""
        return [*self.on, *self.worked, *self.done, *self.after, *self.always]

    def below(self) -> Iterator[State]:
        """All states inside, in document order."""
        for child in self.children:
            yield child
            yield from child.below()

    def ancestors(self) -> list[State]:
        """Those around it, from the inside out."""
        return [] if self.parent is None else [self.parent, *self.parent.ancestors()]

    def is_inside(self, other: State) -> bool:
        return other in self.ancestors()


class Chart:
    """``top`` is the machine itself. ``errors``: "refuse" or "raise"."""

    def __init__(self, top: State, errors: str, data: dict[str, Any]) -> None:
        self.top, self.errors, self.data = top, errors, data
        self.states = {state.name: state for state in [top, *top.below()]}
        numbers = itertools.count(1)
        for order, state in enumerate(self.states.values()):
            state.order = order
            for child in state.children:
                child.parent = state
            for transition in state.transitions:
                transition.source, transition.id = state, f"t{next(numbers)}"

    def __repr__(self) -> str:
        """What hypothesis shows of a failing example."""
        from .rendering import definition_of

        return json.dumps(definition_of(self))

    def named(self, names: tuple[str, ...]) -> list[State]:
        return [self.states[name] for name in names]
