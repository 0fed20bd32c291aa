"""What a transaction did with rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Transition:
    """One call of a method. ``target``: the name of the state, None where it stays; ``source``: the value before;
    ``begins``: as ``Heard`` has it."""

    event: str
    source: Any
    target: Any
    actor: str
    reason: str
    begins: bool = False


@dataclass
class Change:
    """What one transaction did with one row."""

    transitions: list[Transition] = field(default_factory=list)
    created: bool = False
    deleted: bool = False
    actor: str = ""
