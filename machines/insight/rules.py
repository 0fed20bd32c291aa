"""What a definition allows from one state to another, for a check of steps that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import Outline, outline
from machines.engine.definitions.outline import is_match


@dataclass(frozen=True, slots=True)
class Rules:
    """``steps``: state -> descriptor of events and the leaves in which its step may rest."""

    steps: Mapping[str, tuple[tuple[str, frozenset[str]], ...]]

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Rules:
        found = outline(definition)
        steps = {}
        for state in found.states:
            around, taken = _list_around(found, state.name), []
            for name in around:
                own = found.state(name)
                for transition in own.transitions if own else ():
                    ends = _find_ends(found, transition.targets or (state.name,))
                    taken += [(event, ends) for event in transition.events]
            steps[state.name] = tuple(taken)
        return cls(steps)

    def allows(self, source: str, target: str, event: str) -> bool:
        return any(target in ends and is_match(name, event) for name, ends in self.steps.get(source, ()))


def _list_around(found: Outline, name: str) -> list[str]:
    """List a state and those around it."""
    around, state = [], found.state(name)
    while state is not None:
        around.append(state.name)
        state = found.state(state.parent) if state.parent else None
    return around


def _find_ends(found: Outline, targets: tuple[str, ...]) -> frozenset[str]:
    """Return the leaves in which a step to these states may rest: what they enter by default, any leaf for a state of
    the history, and what follows by itself, ``always`` and the ends of states."""
    ends: set[str] = set()
    waiting = list(targets)
    while waiting:
        state = found.state(waiting.pop())
        if state is None or state.name in ends:
            continue
        ends.add(state.name)
        waiting += state.initial
        if state.type == "history" and state.parent:
            waiting += [one.name for one in found.states if state.parent in _list_around(found, one.name)]
        for name in _list_around(found, state.name):
            own = found.state(name)
            waiting += [
                target for each in (own.transitions if own else ()) if each.cause in ("always", "state done")
                for target in each.targets
            ]  # fmt: skip
    return frozenset(ends)
