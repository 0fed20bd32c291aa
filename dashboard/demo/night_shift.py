"""Re-drives dead jobs of the demo, so that there are always some to look at and never too many."""

from __future__ import annotations

from machines.engine import Engine

ACTOR = "night shift"
ENOUGH = 12  # dead or handled jobs of a queue that stay visible in the demo
AGAIN = (("service_activation", "devices"),)  # what waits for the work: it is done once more
OVER = (("new_device", "provision"), ("service_activation", "entitlement"))  # nobody waits for it any more


class NightShift:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def look(self) -> int:
        """Handle queues with too many jobs: re-drive the dead ones, purge the handled ones. Return how many jobs that
        were. May raise what the engine raises."""
        again = [self._redrive(*queue) for queue in AGAIN if self._is_full(*queue, "dead")]
        over = [self._purge(*queue) for queue in OVER if self._is_full(*queue, "handled")]
        return sum(again) + sum(over)

    def _is_full(self, machine: str, queue: str, place: str) -> bool:
        return self._engine.queues(machine).get(queue, {}).get(place, 0) > ENOUGH

    def _redrive(self, machine: str, queue: str) -> int:
        return self._engine.redrive(machine, queue, actor=ACTOR, reason="it is quiet now")

    def _purge(self, machine: str, queue: str) -> int:
        return self._engine.purge(machine, queue, place="handled", actor=ACTOR, reason="all of them were put right")
