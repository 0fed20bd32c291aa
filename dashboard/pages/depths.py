"""How much work each queue holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PLACES = ("ready", "leased", "delayed", "dead")


@dataclass(frozen=True, slots=True)
class Depth:
    """``ready`` waits for a worker, ``leased`` is in a worker's hands, ``delayed`` waits for its next attempt,
    ``dead`` is out of attempts and waits for a person."""

    machine: str
    queue: str
    ready: int
    leased: int
    delayed: int
    dead: int

    @property
    def route(self) -> str:
        """``machine/queue``: how the live topic and a worker's row name it."""
        return f"{self.machine}/{self.queue}"

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(place, getattr(self, place)) for place in PLACES]


def depths_of(machine: str, queues: Mapping[str, Mapping[str, int]]) -> list[Depth]:
    """From the engine's ``{queue: {place: n}}``, in its order."""
    return [Depth(machine, queue, *(int(held.get(place, 0)) for place in PLACES)) for queue, held in queues.items()]
