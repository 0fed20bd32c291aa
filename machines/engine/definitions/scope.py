"""What all readers of one definition share: the tree of its states and the numbers of its transitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .path import quote
from .place import Place
from .tree import Branch, Tree, can_be_active_together


@dataclass(slots=True)
class Numbers:
    """Transition ids: t1, t2, ... in document order. ``top_is_target``: a transition leads to the machine itself."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    top_is_target: bool = False

    def next_id(self) -> str:
        return f"t{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class Scope:
    """``source`` is the state that is being read; the machine itself at first. ``machines`` are those embedded."""

    tree: Tree
    source: Branch
    machines: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)

    def within(self, branch: Branch) -> Scope:
        return replace(self, source=branch)

    def next_id(self) -> str:
        return self.numbers.next_id()

    def machine_named(self, name: str) -> str:
        """The full name of a machine: one that is embedded goes by its short name here."""
        return f"{self.tree.machine}.{name}" if name in self.machines else name

    @property
    def brings(self) -> tuple[str, ...]:
        """The full names of those embedded."""
        return tuple(f"{self.tree.machine}.{name}" for name in self.machines)

    def branch(self, place: Place, inside: bool = False) -> Branch | None:
        """The state a place names; reported when there is none. ``inside``: bare names are those of children."""
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
        """The states a target names, one or several that can be active together."""
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
            place.report.unknown("SB101", place.path, "state", target, known, otherwise)
            return
        hint = "" if self.tree.branches else "the definition has no states"
        sign = "#" if target.startswith("#") else ""
        place.report.unknown("SB101", place.path, "state", target, [sign + name for name in self.tree.known], hint)
