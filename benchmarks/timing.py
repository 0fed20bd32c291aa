"""Timers: armed and disarmed by steps, fired by a tick, and what a tick costs while a great many only wait."""

from __future__ import annotations

from typing import Any

from .report import Row, Section
from .stage import Stage

INSTANCES = 5000
WAITING = 1_000_000  # deadlines that are not due
TICKS = 2000
NOW = 1_800_000_000_000  # ms
MACHINE: dict[str, Any] = {
    "id": "timed",
    "initial": "A",
    "states": {"A": {"after": {"1h": "B"}, "on": {"go": "B"}}, "B": {"after": {"1h": "A"}, "on": {"go": "A"}}},
}


class Timing:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client = stage.engine.client
        self._root = stage.engine.keys.partition("timed").root

    def section(self) -> Section:
        self._stage.engine.publish(MACHINE)
        armed = self._calls("sb_create", [(f"t{n}", "", "", "", "", "", NOW) for n in range(INSTANCES)])
        rearmed = self._calls("sb_fire", [(f"t{n}", "go", "", "", "", "", "", NOW) for n in range(INSTANCES)])
        fired = self._fired()
        idle = self._idle()
        rows = [
            Row("instances created, each arms a timer", armed),
            Row("steps that disarm a timer and arm another", rearmed),
            Row("due timers fired by ticks, each a step that arms the next", fired),
            Row("a tick while a million timers wait", 1e6 / idle, unit="µs"),
        ]
        return Section("Timers", rows, "By the server's own time.")

    def _calls(self, function: str, arguments: list[tuple[object, ...]]) -> float:
        before = self._stage.cpu()
        for at in range(0, len(arguments), 500):
            pipeline = self._client.pipeline(transaction=False)
            for words in arguments[at : at + 500]:
                pipeline.fcall(function, 1, self._root, *words)
            if any(reply[0] != "OK" for reply in pipeline.execute()):
                raise RuntimeError(f"{function} was refused")
        return len(arguments) / (self._stage.cpu() - before)

    def _fired(self) -> float:
        before, fired = self._stage.cpu(), 0
        while fired < INSTANCES:
            reply = self._client.fcall("sb_tick", 1, self._root, NOW + 3_600_000, 500)
            if not int(reply[2][0]):
                raise RuntimeError(f"{fired} of {INSTANCES} timers fired")
            fired += int(reply[2][0])
        return fired / (self._stage.cpu() - before)

    def _idle(self) -> float:
        """Ticks a second of the server's CPU, with a million deadlines ahead."""
        key = self._stage.engine.keys.partition("timed").timers
        for at in range(0, WAITING, 10_000):
            self._client.zadd(key, {f"1.1:waiting-{n}": NOW * 2 + n for n in range(at, at + 10_000)})
        before = self._stage.cpu()
        for _ in range(TICKS // 100):
            pipeline = self._client.pipeline(transaction=False)
            for _ in range(100):
                pipeline.fcall("sb_tick", 1, self._root, NOW, 500)
            pipeline.execute()
        spent = self._stage.cpu() - before
        self._client.unlink(key)
        return TICKS / spent
