"""A machine with some of its states folded: each of them stands for all that is in it.

What leads from inside a folded state out of it becomes a line of its own; several that lead the same way become one,
named after all their events. What stays inside is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .labels import event_text, timer_text
from .state_tree import Tree

if TYPE_CHECKING:
    from machines.engine.definitions import Outline, StateOutline, TransitionOutline


@dataclass(frozen=True, slots=True)
class Folded:
    """``shown``: state -> the state it is shown as. ``members``: a line's transition -> all that it stands for."""

    outline: Outline
    shown: dict[str, str]
    members: dict[str, tuple[str, ...]]


def foldable(outline: Outline) -> tuple[str, ...]:
    """Return the states with states in them, in document order; not the one that stands for the machine itself."""
    tree = Tree(outline)
    return tuple(state.name for state in outline.states if tree.is_cluster(state) and state.name != outline.root)


def top_level(outline: Outline) -> frozenset[str]:
    """Return what to fold for a drawing of the top level alone; where the machine itself is a state, of those in it."""
    tree = Tree(outline)
    return frozenset(state.name for state in tree.children(tree.state(outline.root)) if tree.is_cluster(state))


def effective(outline: Outline, folds: Collection[str]) -> frozenset[str]:
    """Return those of ``folds`` that make a difference: names of states around others, and not within another of
    them."""
    known = set(foldable(outline)) & set(folds)
    tree = Tree(outline)
    return frozenset(name for name in known if not any(above in known for above in list(tree.ancestors(name))[1:]))


def fold(outline: Outline, folds: Collection[str]) -> Folded:
    return _Folding(Tree(outline), effective(outline, folds)).build()


class _Folding:
    def __init__(self, tree: Tree, folds: frozenset[str]) -> None:
        self._tree = tree
        self._folds = folds
        self._shown = {state.name: self._shown_as(state) for state in tree.outline.states}
        self._members: dict[str, tuple[str, ...]] = {}

    def _shown_as(self, state: StateOutline) -> str:
        return next((above for above in self._tree.ancestors(state.name) if above in self._folds), state.name)

    def build(self) -> Folded:
        outline = self._tree.outline
        states = tuple(self._state(state) for state in outline.states if self._shown[state.name] == state.name)
        fed = {queue for state in states for queue in (*(invoke.queue for invoke in state.invokes), *state.enqueues)}
        queues = tuple(queue for queue in outline.queues if queue in fed)
        small = replace(outline, states=states, initial=self._shown[outline.initial], queues=queues)
        return Folded(small, self._shown, self._members)

    def _state(self, state: StateOutline) -> StateOutline:
        """Fold a state: only the lines that leave it are left."""
        if state.name in self._folds:
            bare = replace(state, entry=(), exit=(), invokes=(), enqueues=(), initial=(), children=())
            return replace(bare, transitions=tuple(self._leaving(state)))
        moved = tuple(self._move_ends(transition, state, state.name) for transition in state.transitions)
        initial = tuple(dict.fromkeys(self._shown[name] for name in state.initial if name in self._shown))
        return replace(state, transitions=moved, initial=initial)

    def _leaving(self, folded: StateOutline) -> Iterator[TransitionOutline]:
        ways: dict[tuple[str, ...], list[tuple[TransitionOutline, StateOutline]]] = {}
        for state in (folded, *self._tree.below(folded)):
            for transition in state.transitions:
                targets = self._targets(transition)
                if set(targets) - {folded.name}:
                    ways.setdefault(targets, []).append((transition, state))
        for found in ways.values():
            yield self._one(found, folded.name)

    def _one(self, found: list[tuple[TransitionOutline, StateOutline]], source: str) -> TransitionOutline:
        first = self._move_ends(*found[0], source)
        if len(found) == 1:
            return first
        self._members[first.id] = tuple(transition.id for transition, _ in found)
        events = tuple(dict.fromkeys(event_text(transition, state) for transition, state in found))
        return replace(first, events=events, guard_text=None, actions=(), description="", delay="", cause="on")

    def _move_ends(self, transition: TransitionOutline, state: StateOutline, source: str) -> TransitionOutline:
        targets = self._targets(transition)
        delay = timer_text(transition, state)
        return replace(transition, source=source, target=next(iter(targets), None), targets=targets, delay=delay)

    def _targets(self, transition: TransitionOutline) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._shown[name] for name in transition.targets if name in self._shown))
