"""A machine as python-statemachine holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from machines.engine.definitions.report import Path


@dataclass(eq=False, slots=True)
class Row:
    """A state. ``initial``: the child that is entered with it. ``entry`` and ``exit`` are names of callbacks, ``work``
    of handlers."""

    key: str
    path: Path
    parent: Row | None = None
    children: list[Row] = field(default_factory=list)
    initial: Row | None = None
    is_parallel: bool = False
    is_final: bool = False
    history: str = ""
    description: str = ""
    entry: list[str] = field(default_factory=list)
    exit: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Row]:
        """The state and all in it."""
        waiting = [self]
        while waiting:
            at = waiting.pop()
            yield at
            waiting.extend(reversed(at.children))

    def is_inside(self, other: Row) -> bool:
        at: Row | None = self
        while at is not None and at is not other:
            at = at.parent
        return at is other


@dataclass(frozen=True, slots=True)
class Move:
    """A transition. ``event`` is empty for one that is taken at once; ``conditions`` are texts with what they must be.

    ``is_internal``: nothing is left or entered, or nothing but what is inside.
    """

    path: Path
    event: str
    source: Row
    targets: list[Row]
    conditions: list[tuple[str, bool]]
    actions: list[str]
    is_internal: bool = False
    is_done: bool = False


@dataclass(slots=True)
class Table:
    name: str
    top: Row
    moves: list[Move]
