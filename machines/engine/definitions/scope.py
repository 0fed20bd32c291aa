"""What all readers of one definition share: the names of its states and the numbers of its transitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from .place import Place


@dataclass(frozen=True, slots=True)
class Scope:
    """``ids`` are the states' own ids, for targets written ``#id``. Transition ids: t1, t2, ... in document order."""

    machine: str
    states: tuple[str, ...]
    ids: dict[str, str]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._known.update(self.states)

    def next_id(self) -> str:
        return f"t{next(self._numbers)}"

    def find(self, target: str) -> str | None:
        """The state a target names: ``Active``, ``#Active``, ``#machine.Active`` or ``#<a state's id>``."""
        if target in self._known:
            return target
        if not target.startswith("#"):
            return None
        name = target[1:]
        if name in self.ids:
            return self.ids[name]
        inside = name.removeprefix(f"{self.machine}.")
        return next((state for state in (name, inside) if state in self._known), None)

    def state(self, place: Place) -> str | None:
        """The state a place names; reported when there is none."""
        target = place.text("a state's name")
        if target is None:
            return None
        found = self.find(target)
        if found is None and target.startswith("."):
            place.error("SB108", "targets relative to a state (.name) are not yet available", "write the state's name")
        elif found is None:
            hint = "" if self.states else "the definition has no states"
            place.report.unknown("SB101", place.path, "state", target, self._known, hint)
        return found
