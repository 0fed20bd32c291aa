"""What the page of an SM key shows: states by name, the table of the map, a failed attempt."""

from __future__ import annotations

import json
from dataclasses import dataclass

from machines.services.sm_keys import Kept

MAX_TARGETS = 30  # states one row of the table leads to


@dataclass(frozen=True, slots=True)
class Name:
    """A state as a page writes it. ``sent``: as its forms carry it. ``known``: a key of the map."""

    name: str
    known: bool = True

    @property
    def sent(self) -> str:
        return json.dumps(self.name)

    def __str__(self) -> str:
        return self.name or "(no name)"


@dataclass(frozen=True, slots=True)
class Row:
    """A state and where it leads; ``more`` counts what is left out."""

    state: Name
    onward: list[Name]
    more: int


@dataclass(frozen=True, slots=True)
class FailedMove:
    """What was tried and did not happen: refused, conflict or mistake."""

    kind: str
    what: str
    message: str
    code: str
    status: int


def make_row(kept: Kept, state: Name) -> Row:
    targets = list(dict.fromkeys(kept.map[state.name]))
    return Row(state, [Name(one, one in kept.map) for one in targets[:MAX_TARGETS]], len(targets[MAX_TARGETS:]))
