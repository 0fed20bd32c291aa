"""Pairs the states of two versions: by name, by path, then by shape; and writes parts of versions as texts that
can be compared or shown."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from machines.engine.definitions import StateOutline, render
from machines.engine.versions.content import VersionContent
from machines.engine.versions.planning.mapping import MOST_COMPARISONS, Features, compare, describe_states, find_same

SAME_SHAPE = 0.55  # a score from which two states without a counterpart are one that was renamed
SAME_CHILDREN = 0.6  # the common part of their children from which compound states are one


@dataclass(frozen=True, slots=True)
class Pair:
    """A state in both versions. ``match``: "id" for the same name, "path" or "shape"; ``why``: of a shape."""

    old: StateOutline
    new: StateOutline
    match: str
    why: str = ""


@dataclass
class Pairs:
    """The states of two versions. ``names``: old name -> new name, of all pairs."""

    old: VersionContent
    new: VersionContent

    def __post_init__(self) -> None:
        self.names: dict[str, str] = {}
        self._found: dict[str, Pair] = {}
        self._pair_same()
        self._pair_similar()

    @cached_property
    def pairs(self) -> list[Pair]:
        """Return the pairs in the order of the new version."""
        found = {pair.new.name: pair for pair in self._found.values()}
        return [found[state.name] for state in self.new.outline.states if state.name in found]

    @cached_property
    def removed(self) -> list[StateOutline]:
        return [state for state in self.old.outline.states if state.name not in self._found]

    @cached_property
    def added(self) -> list[StateOutline]:
        taken = {pair.new.name for pair in self._found.values()}
        return [state for state in self.new.outline.states if state.name not in taken]

    def map(self, name: str | None) -> str | None:
        """Return the new name of a state of the old version, its own where it has no counterpart."""
        return None if name is None else self.names.get(name, name)

    def _add(self, old: StateOutline, new: StateOutline, match: str, why: str = "") -> None:
        self._found[old.name] = Pair(old, new, match, why)
        self.names[old.name] = new.name

    def _pair_same(self) -> None:
        roots = self.old.outline.root, self.new.outline.root
        for state in self.old.outline.states:
            if state.name == roots[0] and roots[1]:
                self._add(state, get_state(self.new, roots[1]), "id")
                continue
            same = find_same(self.old, self.new, state)
            if same is not None:
                new = get_state(self.new, same[0])
                self._add(state, new, "id" if new.name == state.name else "path")

    def _pair_similar(self) -> None:
        """Pair what is left by similarity, the best pairs first; compound states by their children as well."""
        old, new = self.removed, self.added
        self.__dict__.pop("removed"), self.__dict__.pop("added")
        if not old or not new or len(old) * len(new) > MOST_COMPARISONS:
            return
        ours = describe_states(self.old, {state.name for state in old})
        theirs = describe_states(self.new, {state.name for state in new})
        scored = [
            (*self._score(name, one, other_name, other), name, other_name)
            for name, one in ours.items()
            for other_name, other in theirs.items()
        ]
        taken: set[str] = set()
        for score, why, name, other_name in sorted(scored, key=lambda row: -row[0]):
            if score >= SAME_SHAPE and name not in self._found and other_name not in taken:
                taken.add(other_name)
                self._add(get_state(self.old, name), get_state(self.new, other_name), "shape", why)

    def _score(self, name: str, one: Features, other_name: str, other: Features) -> tuple[float, str]:
        old, new = get_state(self.old, name), get_state(self.new, other_name)
        if old.type != new.type:
            return 0, ""
        score, why = compare(one, other, self.names)
        ours, theirs = {self.map(child) for child in old.children}, set(new.children)
        if ours or theirs:
            shared = 2 * len(ours & theirs) / (len(ours) + len(theirs))
            if shared >= SAME_CHILDREN:
                return max(score, shared), "most states inside are the same"
        return score, why


def get_state(version: VersionContent, name: str) -> StateOutline:
    """Return a state that the version has."""
    found = version.outline.state(name)
    assert found is not None, name
    return found


def locate_state(version: VersionContent, state: StateOutline) -> tuple[str | int, ...]:
    """Return the path of a state in its definition."""
    path: list[str | int] = []
    for around in reversed(version.outline.lineage(state.name)):
        if around.name == version.outline.root or not around.path:
            continue
        parent = get_state(version, around.parent) if around.parent else None
        before = f"{parent.path}." if parent and parent.path else ""
        path += ["states", around.path.removeprefix(before)]
    return tuple(path)


def render_state(version: VersionContent, state: StateOutline, *below: str | int) -> str:
    """Format the path of a state, or of something below it."""
    return render((*locate_state(version, state), *below))


def strip(node: Any) -> Any:
    """Return a part of a program without the source texts of its guards."""
    if isinstance(node, list):
        if len(node) == 3 and node[0] == "because" and isinstance(node[1], str):
            return strip(node[2])
        return [strip(one) for one in node]
    if isinstance(node, dict):
        return {key: strip(one) for key, one in node.items() if key != "text"}
    return node


def freeze(node: Any) -> str:
    """Return a text that is equal for equal parts."""
    return json.dumps(strip(node), sort_keys=True, ensure_ascii=False)


def freeze_source(value: Any) -> str:
    """Return a text that is equal for equal parts of documents; the order of keys has no meaning."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def show(value: Any) -> str:
    """Format a value of a definition in a line."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
