"""Presents an SM key: states by name, the table of the map, a failed move."""

from __future__ import annotations

import json
from dataclasses import dataclass

from machines.instances.sm_keys import Kept

MAX_TARGETS = 30  # states one row of the table leads to


@dataclass(frozen=True, slots=True)
class Name:
    """Holds a state's name. ``sent``: as its forms send it; ``known``: it is a key of the map."""

    name: str
    known: bool = True

    @property
    def sent(self) -> str:
        return json.dumps(self.name)

    def __str__(self) -> str:
        return self.name or "(no name)"


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a state and its targets; ``more`` counts those that are left out."""

    state: Name
    onward: list[Name]
    more: int


@dataclass(frozen=True, slots=True)
class FailedMove:
    """Holds a move that failed: refused, conflict or mistake."""

    kind: str
    what: str
    message: str
    code: str
    status: int


def make_row(kept: Kept, state: Name) -> Row:
    targets = list(dict.fromkeys(kept.map[state.name]))
    return Row(state, [Name(one, one in kept.map) for one in targets[:MAX_TARGETS]], len(targets[MAX_TARGETS:]))
