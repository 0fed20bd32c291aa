"""The top level of a machine alone: each state there stands for all that is in it.

What leads from inside one such state into another becomes a line between the two; several that lead the same way
become one, named after all their events. What stays inside is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .labels import event_text, timer_text
from .tree import Tree

if TYPE_CHECKING:
    from machines.engine.definitions import Outline, StateOutline, TransitionOutline


@dataclass(frozen=True, slots=True)
class Folded:
    """``shown``: state -> the state it is shown as. ``members``: a line's transition -> all that it stands for."""

    outline: Outline
    shown: dict[str, str]
    members: dict[str, tuple[str, ...]]


def can_fold(outline: Outline) -> bool:
    """Whether the top level alone shows less than the whole."""
    tree = Tree(outline)
    return any(tree.is_cluster(state) for state in level(tree))


def level(tree: Tree) -> list[StateOutline]:
    """The states at the top; where the machine itself is one, those in it."""
    return tree.children(tree.state(tree.outline.root))


def fold(outline: Outline) -> Folded:
    return _Folding(Tree(outline)).made()


class _Folding:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._level = level(tree)
        self._root = tree.state(tree.outline.root)
        own = {self._root.name: self._root.name} if self._root else {}
        self._shown = own | {s.name: top.name for top in self._level for s in (top, *tree.below(top))}
        self._members: dict[str, tuple[str, ...]] = {}

    def made(self) -> Folded:
        roots = [self._state(self._root, self._root)] if self._root else []
        states = [*roots, *(self._state(top, top) for top in self._level)]
        outline = self._tree.outline
        small = replace(outline, states=tuple(states), initial=self._shown[outline.initial], queues=())
        return Folded(small, self._shown, self._members)

    def _state(self, state: StateOutline, top: StateOutline) -> StateOutline:
        """The root keeps its lines; a leaf keeps them all; of a state with states in it, those that leave it."""
        if state is self._root or not self._tree.is_cluster(state):
            moved = tuple(self._moved(transition, state, top) for transition in state.transitions)
            initial = tuple(dict.fromkeys(self._shown[name] for name in state.initial if name in self._shown))
            return replace(state, transitions=moved, initial=initial)
        bare = replace(state, entry=(), exit=(), invokes=(), enqueues=(), initial=(), children=())
        return replace(bare, transitions=tuple(self._leaving(state)))

    def _leaving(self, top: StateOutline) -> Iterator[TransitionOutline]:
        ways: dict[tuple[str, ...], list[tuple[TransitionOutline, StateOutline]]] = {}
        for state in (top, *self._tree.below(top)):
            for transition in state.transitions:
                targets = self._targets(transition)
                if set(targets) - {top.name}:
                    ways.setdefault(targets, []).append((transition, state))
        for found in ways.values():
            yield self._one(found, top)

    def _one(self, found: list[tuple[TransitionOutline, StateOutline]], top: StateOutline) -> TransitionOutline:
        first = self._moved(*found[0], top)
        if len(found) == 1:
            return first
        self._members[first.id] = tuple(transition.id for transition, _ in found)
        events = tuple(dict.fromkeys(event_text(transition, state) for transition, state in found))
        return replace(first, events=events, guard_text=None, actions=(), description="", delay="", cause="on")

    def _moved(self, transition: TransitionOutline, state: StateOutline, top: StateOutline) -> TransitionOutline:
        targets = self._targets(transition)
        delay = timer_text(transition, state)
        return replace(transition, source=top.name, target=next(iter(targets), None), targets=targets, delay=delay)

    def _targets(self, transition: TransitionOutline) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._shown[name] for name in transition.targets if name in self._shown))
