"""Merges the outlines of two versions into one, so that one diagram shows what was added, removed, renamed and changed.

The diagram is the new version's, with the removed states and transitions of the old one where they were.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from machines.engine.definitions import Outline, StateOutline, TransitionOutline

OLD = "was-"  # before the id of a removed transition


@dataclass(frozen=True, slots=True)
class MergedOutline:
    """Holds the outline of both versions. ``states``, ``transitions``: of the old version's removed ones, name or id ->
    the one of the outline that stands for it."""

    outline: Outline
    states: dict[str, str] = field(default_factory=dict)
    transitions: dict[str, str] = field(default_factory=dict)


def merge(
    old: Outline, new: Outline, *, states: Collection[str], transitions: Collection[str], renamed: Mapping[str, str]
) -> MergedOutline:
    """Add the removed ``states`` and ``transitions`` of ``old`` to ``new``. ``renamed``: state of ``old`` -> its name
    in ``new``, where they differ."""
    merged = _Merge(old, new, renamed)
    for state in old.states:
        if state.name in states:
            merged.add_state(state)
    for state in old.states:
        for transition in state.transitions:
            if transition.id in transitions or state.name in states:
                merged.add_transition(state, transition)
    return merged.build()


class _Merge:
    def __init__(self, old: Outline, new: Outline, renamed: Mapping[str, str]) -> None:
        self._old, self._new = old, new
        self._states = {state.name: state for state in new.states}
        self._names = dict(renamed)
        self._index = max((state.index for state in new.states), default=0)
        self._added: dict[str, str] = {}
        self._lines: dict[str, str] = {}

    def build(self) -> MergedOutline:
        queues = tuple(dict.fromkeys([*self._new.queues, *self._old.queues]))
        outline = replace(self._new, states=tuple(self._states.values()), queues=queues)
        return MergedOutline(outline, self._added, self._lines)

    def add_state(self, state: StateOutline) -> None:
        """Add a removed state after all others, with an index of its own, inside of the state that was around it."""
        self._index += 1
        name = state.name if state.name not in self._states else f"{state.name} (before)"
        self._names[state.name] = self._added[state.name] = name
        parent = self._adopt(name, state)
        self._states[name] = replace(
            state, name=name, index=self._index, transitions=(), children=(), parent=parent.name if parent else None,
            path=f"{parent.path}.{name}" if parent and parent.path else name, depth=parent.depth + 1 if parent else 0,
            initial=tuple(self._names.get(one, one) for one in state.initial),
        )  # fmt: skip

    def _adopt(self, name: str, state: StateOutline) -> StateOutline | None:
        """Add a removed state to the children of the state that was around it, and return that."""
        around = self._names.get(state.parent, state.parent) if state.parent else ""
        parent = self._states.get(around) or (self._states.get(self._new.root) if self._new.root else None)
        while parent is not None and parent.type in ("final", "history"):
            parent = self._states.get(parent.parent) if parent.parent else None
        if parent is None:
            return None
        kind = "compound" if parent.type == "atomic" else parent.type
        found = replace(parent, type=kind, children=(*parent.children, name), initial=parent.initial or (name,))
        self._states[parent.name] = found
        return found

    def add_transition(self, state: StateOutline, one: TransitionOutline) -> None:
        """Add a removed transition to the state that stands for its source."""
        around = self._states.get(self._names.get(state.name, state.name))
        if around is None:
            return
        targets = tuple(self._names.get(target, target) for target in one.targets)
        target = self._names.get(one.target, one.target) if one.target else None
        if any(name not in self._states for name in (*targets, *filter(None, [target]))):
            return
        line = replace(one, id=f"{OLD}{one.id}", source=around.name, target=target, targets=targets)
        self._states[around.name] = replace(around, transitions=(*around.transitions, line))
        self._lines[one.id] = line.id
