"""What a definition allows from one state to another, for a check of steps that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import Outline, outline
from machines.engine.definitions.outline import is_match


@dataclass(frozen=True, slots=True)
class Rule:
    """A transition. ``ends``: the leaves in which its step may rest, as far as no raised event takes it further."""

    source: str
    events: tuple[str, ...]
    ends: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """``transitions``: by id; ``around``: state -> itself and those around it."""

    transitions: Mapping[str, Rule]
    around: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Rules:
        found = outline(definition)
        transitions = {
            one.id: Rule(state.name, one.events, _find_ends(found, one.targets or (state.name,)))
            for state in found.states for one in state.transitions
        }  # fmt: skip
        return cls(transitions, {state.name: _list_around(found, state.name) for state in found.states})

    def allows(self, source: str, target: str, event: str, taken: Sequence[str] = ()) -> bool:
        """Tell whether a step is one of the definition. ``taken``: ids of its transitions, by which raised events are
        followed; where the definition lacks one, the event alone decides."""
        around = self.around.get(source, ())
        begins = [
            (id, one.ends) for id, one in self.transitions.items()
            if one.source in around and any(is_match(name, event) for name in one.events)
        ]  # fmt: skip
        if any(target in ends for _, ends in begins):
            return True
        if any(id not in self.transitions for id in taken):
            return False
        return any(id in taken for id, _ in begins) and any(target in self.transitions[id].ends for id in taken)


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
