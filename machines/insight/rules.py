"""What a definition allows from one state to another, for a check of steps that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import Outline, outline
from machines.engine.definitions.outline import is_match


@dataclass(frozen=True, slots=True)
class Rule:
    """A transition. ``ends``: the leaves in which its step may rest, as far as no raised event takes it further.
    ``inside``: the innermost state that it stays inside, whose leaves it may leave; "" for all, None for no leaf."""

    source: str
    events: tuple[str, ...]
    ends: frozenset[str]
    inside: str | None = ""

    def takes(self, event: str) -> bool:
        return any(is_match(name, event) for name in self.events)


@dataclass(frozen=True, slots=True)
class Rules:
    """``transitions``: by id; ``around``: state -> itself and those around it."""

    transitions: Mapping[str, Rule]
    around: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Rules:
        found = outline(definition)
        transitions = {
            one.id: Rule(state.name, one.events, find_ends(found, one.targets or (state.name,)),
                         _find_inside(found, state.name, one.targets))
            for state in found.states for one in state.transitions
        }  # fmt: skip
        return cls(transitions, {state.name: _list_around(found, state.name) for state in found.states})

    def allows_step(self, sources: Sequence[str], targets: Sequence[str], event: str, taken: Sequence[str]) -> bool:
        """Tell whether a step between configurations, each a list of leaves, is one of the definition."""
        if len(sources) == len(targets) == 1:
            return self.allows(sources[0], targets[0], event, taken)
        return self._allows_leaves(sources, targets, event, taken)

    def allows(self, source: str, target: str, event: str, taken: Sequence[str] = ()) -> bool:
        """Tell whether a step is one of the definition. ``taken``: ids of its transitions, by which raised events are
        followed; where the definition lacks one, the event alone decides."""
        begins = self._find_begins([source], event)
        if any(target in one.ends or (one.inside is None and target == source) for one in begins.values()):
            return True
        if any(id not in self.transitions for id in taken):
            return False
        return any(id in begins for id in taken) and any(target in self.transitions[id].ends for id in taken)

    def _find_begins(self, leaves: Sequence[str], event: str) -> dict[str, Rule]:
        """Return the transitions that take an event in these leaves or around them, by id."""
        around = {name for leaf in leaves for name in self.around.get(leaf, ())}
        return {
            id: one for id, one in self.transitions.items()
            if one.source in around and one.takes(event)
        }  # fmt: skip

    def _allows_leaves(self, sources: Sequence[str], targets: Sequence[str], event: str, taken: Sequence[str]) -> bool:
        """Tell the same of a step between several leaves at once: a transition takes the event, and of those that were
        taken one explains each leaf that was left, and one each that was entered."""
        begins = self._find_begins(sources, event)
        rules = [self.transitions[id] for id in taken if id in self.transitions]
        if len(rules) < len(taken) or not taken:
            rules = list(begins.values())
        elif not any(id in begins for id in taken):
            return False
        left = {one.inside for one in rules} - {None}
        return (
            bool(begins)
            and all(any(leaf in one.ends for one in rules) for leaf in {*targets} - {*sources})
            and all("" in left or left & {*self.around.get(leaf, ())} for leaf in {*sources} - {*targets})
        )


def _list_around(found: Outline, name: str) -> list[str]:
    """List a state and those around it."""
    return [state.name for state in found.lineage(name)]


def _find_inside(found: Outline, source: str, targets: Sequence[str]) -> str | None:
    """Return the innermost state around source and targets that has one leaf at a time, or "" (SCXML 3.13)."""
    if not targets:
        return None
    for state in found.lineage(source)[1:]:
        if state.type == "compound" and all(state in found.lineage(target)[1:] for target in targets):
            return state.name
    return ""


def find_ends(found: Outline, targets: tuple[str, ...]) -> frozenset[str]:
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
        for whole in found.lineage(state.name):  # with a region all others are entered
            waiting += whole.children if whole.type == "parallel" else ()
        if state.type == "history" and state.parent:
            waiting += [one.name for one in found.states if state.parent in _list_around(found, one.name)]
        for name in _list_around(found, state.name):
            own = found.state(name)
            waiting += [
                target for each in (own.transitions if own else ()) if each.cause in ("always", "state done")
                for target in each.targets
            ]  # fmt: skip
    return frozenset(ends)
