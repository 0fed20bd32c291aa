"""The tree of a definition's states, and the scope that all its readers share.

The tree is built before any state is read: it knows the names of states and what a target names. It never reports;
malformed states are reported by their readers. The scope adds the numbers of transitions and the embedded machines.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from machines.engine import limits

from .findings import quote
from .model import Kind
from .place import Place

KINDS: tuple[Kind, ...] = ("atomic", "final", "compound", "parallel", "history")


@dataclass(eq=False, slots=True)
class Branch:
    """One state in the tree. ``explicit``: the definition gives it an ``id``; ``generated``: its name is a path."""

    key: str
    body: dict[str, Any]
    parent: Branch | None
    keys: tuple[str, ...]
    name: str = ""
    explicit: str = ""
    generated: bool = False
    children: dict[str, Branch] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        named = self.body.get("type")
        if named in KINDS and named not in ("atomic", "compound"):
            return KINDS[KINDS.index(named)]
        return "compound" if self.children else "atomic"

    @property
    def word(self) -> str:
        """Return its name for the name of an event. The dots of a path are replaced, since they would separate parts
        of the event's name."""
        name = "_".join(self.keys) if self.generated else self.name
        return re.sub(r"[\s*\x00-\x1f\x7f-\x9f]+", "_", name)[: limits.MAX_INVOKE_ID] or "_"

    def ancestors(self) -> list[Branch]:
        """List its ancestors, innermost first."""
        found = []
        around = self.parent
        while around is not None:
            found.append(around)
            around = around.parent
        return found

    def is_inside(self, other: Branch) -> bool:
        return other in self.ancestors()

    def below(self) -> Iterator[Branch]:
        """List all states inside, in document order."""
        for child in self.children.values():
            yield child
            yield from child.below()

    def descend(self, path: str) -> Branch | None:
        """Return the state a path of keys leads to; a key may itself contain dots."""
        if path in self.children:
            return self.children[path]
        for key, child in self.children.items():
            if path.startswith(f"{key}."):
                found = child.descend(path[len(key) + 1 :])
                if found is not None:
                    return found
        return None


class Tree:
    """All states of one machine. ``top`` is the machine itself."""

    def __init__(self, machine: str, document: dict[str, Any]) -> None:
        self.machine = machine
        self.top = Branch("", document, None, ())
        _grow(self.top, 0)
        self.branches = list(self.top.below())
        counted = Counter(branch.key for branch in self.branches)
        ids = Counter(branch.explicit for branch in self.branches if branch.explicit)
        for branch in self.branches:
            branch.generated = not branch.explicit and (counted[branch.key] > 1 or branch.key in ids)
            branch.name = branch.explicit or (".".join(branch.keys) if branch.generated else branch.key)
        self.names = {branch.name: branch for branch in reversed(self.branches)}
        self._keys = {branch.key: branch for branch in self.branches if counted[branch.key] == 1}
        self.top.name = "(machine)" if not machine or machine in self.names else machine

    @property
    def known(self) -> list[str]:
        """Return the names that a target may use from anywhere."""
        return list(dict.fromkeys([*self.names, *self._keys]))

    def find(self, target: str, source: Branch, near: Branch) -> Branch | None:
        """Return the state a target names, as seen from ``source``.

        ``#id`` and ``#id.child`` from anywhere, ``.child`` below the source; else a state in ``near`` or a path that
        begins with one; else the name of any state, or a path from the top. A state whose own name begins with ``#`` or
        ``.`` is found beside the source where the sign leads nowhere.
        """
        if target.startswith("#"):
            return self._resolve_absolute(target[1:]) or near.children.get(target)
        if target.startswith("."):
            return source.descend(target[1:]) or near.children.get(target)
        return near.descend(target) or self.names.get(target) or self._keys.get(target) or self.top.descend(target)

    def _resolve_absolute(self, path: str) -> Branch | None:
        """Resolve the longest beginning that is a name, then the keys below it."""
        for end in [len(path), *reversed([at for at, character in enumerate(path) if character == "."])]:
            start, rest = path[:end], path[end + 1 :]
            found = self.names.get(start) or self._keys.get(start)
            if found is None and start == self.machine:
                found = self.top
            if found is not None:
                return found.descend(rest) if rest else found
        return None


def _grow(branch: Branch, depth: int) -> None:
    states = branch.body.get("states")
    if not isinstance(states, dict) or depth >= limits.MAX_STATE_DEPTH:
        return
    for key, value in states.items():
        body = value if isinstance(value, dict) else {}
        id = body.get("id")
        child = Branch(key, body, branch, (*branch.keys, key), explicit=id if isinstance(id, str) else "")
        branch.children[key] = child
        _grow(child, depth + 1)


def can_be_active_together(branches: list[Branch]) -> bool:
    """Tell whether one configuration can hold all states: none inside another, each two in different regions."""
    places = [branch.parent or branch if branch.kind == "history" else branch for branch in branches]
    chosen = set(places)
    ways: dict[Branch, set[Branch]] = {}  # a state around some of them -> those just below it that lead to them
    for inner in places:
        for around in inner.ancestors():
            if around in chosen:
                return False
            ways.setdefault(around, set()).add(inner)
            inner = around
    apart = all(len(below) == 1 or around.kind == "parallel" for around, below in ways.items())
    return apart and len(chosen) == len(places)


@dataclass(slots=True)
class Numbers:
    """Transition ids: t1, t2, ... in document order. ``top_is_target``: a transition leads to the machine itself."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    top_is_target: bool = False

    def next_id(self) -> str:
        return f"t{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What readers share. ``source`` is the state that is being read, first the machine itself. ``machines`` are
    embedded."""

    tree: Tree
    source: Branch
    machines: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def within(self, branch: Branch) -> Scope:
        return replace(self, source=branch)

    def next_id(self) -> str:
        return self.numbers.next_id()

    def machine_named(self, name: str) -> str:
        """Return the full name of a machine; an embedded machine is named by its short name here."""
        return f"{self.tree.machine}.{name}" if name in self.machines else name

    @property
    def brings(self) -> tuple[str, ...]:
        """Return the full names of embedded machines."""
        return tuple(f"{self.tree.machine}.{name}" for name in self.machines)

    def branch(self, place: Place, inside: bool = False) -> Branch | None:
        """Return the state a place names; report an unknown one. ``inside``: bare names are those of children."""
        target = place.text("a state's name")
        if target is None:
            return None
        near = self.source if inside else self.source.parent or self.source
        found = self.tree.find(target, self.source, near)
        if found is None:
            self._report_unknown(target, place)
        elif found is self.tree.top:
            self.numbers.top_is_target = True
        return found

    def branches(self, place: Place, inside: bool = False) -> list[Branch]:
        """Return the states a target names: one, or several that can be active together."""
        if place.broken:
            return []
        if isinstance(place.value, list) and not place.value:
            place.error("SB104", "expected a state's name, found an empty array", "leave the key out")
            return []
        found = [branch for one in place.one_or_many() if (branch := self.branch(one, inside)) is not None]
        if not can_be_active_together(found):
            names = ", ".join(quote(branch.name) for branch in found[:5])
            hint = "name one state for each region of a parallel state"
            place.error("SB122", f"the targets {names} cannot be active at once", hint)
        return found

    def _report_unknown(self, target: str, place: Place) -> None:
        if target.startswith("."):
            known = [f".{key}" for key in self.source.children]
            here = quote(self.source.name)
            otherwise = f"{here} has no states inside; write the name without the dot" if not known else ""
            place.report.add_unknown("SB101", place.path, "state", target, known, otherwise)
            return
        hint = "" if self.tree.branches else "the definition has no states"
        sign = "#" if target.startswith("#") else ""
        place.report.add_unknown("SB101", place.path, "state", target, [sign + name for name in self.tree.known], hint)
