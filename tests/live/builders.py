"""Small things the tests of the live view are made of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from dashboard.live.hub.sources import Source, World
from dashboard.live.outbox import Outbox
from machines.engine.records import Live

#: two states and a way to go round for ever; `note` may be null, `size` makes instances large
GATE: dict[str, Any] = {
    "id": "gate",
    "initial": "Shut",
    "context": {"passed": 0, "note": None, "text": ""},
    "states": {
        "Shut": {
            "on": {
                "open": {"target": "Open", "actions": {"set": {"passed": "passed + 1"}}},
                "write": {"actions": {"set": {"text": "event.text"}}},
            }
        },
        "Open": {"on": {"shut": "Shut"}},
    },
}
#: an instance in Work has a job on queue `crew`
SHIFT: dict[str, Any] = {
    "id": "shift",
    "initial": "Rest",
    "states": {
        "Rest": {"on": {"begin": "Work"}},
        "Work": {"invoke": {"src": "crew", "onDone": "Rest"}},
    },
}


def merge(value: Any, patch: Any) -> Any:
    """Apply RFC 7396's MergePatch, as a client does with a delta. Leaves ``value`` as it was."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), change)
    return result


def live(machine: str = "gate", *, now: int = 1000, flow: dict[str, int] | None = None, **counts: int) -> Live:
    total = sum(counts.values())
    return Live(machine, 1, counts, oldest={}, flow=flow or {}, queues={}, now=now, total=total)


def world(*lives: Live, at: int = 1000) -> World:
    """One in which each machine has one partition, read as given, and nobody is in its Studio."""
    readings: dict[Source, Any] = {Source("partition", live.machine, 0): live for live in lives}
    readings |= {Source("edited", live.machine): None for live in lives}
    return World({live.machine: 1 for live in lives}, readings, at)


class Screen:
    """What a page makes of the frames it gets: values by topic, and whether their numbers were in order."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.marks: dict[str, tuple[str, int]] = {}
        self.frames: list[dict[str, Any]] = []
        self.states: list[str] = []

    def show(self, text: str) -> dict[str, Any]:
        frame = json.loads(text)
        self.frames.append(frame)
        if frame["type"] == "snapshot":
            self.values[frame["topic"]] = frame["data"]
        elif frame["type"] == "delta":
            epoch, seq = self.marks[frame["topic"]]
            assert (frame["epoch"], frame["seq"]) == (epoch, seq + 1), "a gap"
            self.values[frame["topic"]] = merge(self.values[frame["topic"]], frame["data"])
        elif frame["type"] == "status":
            self.states.append(frame["state"])
        if "seq" in frame:
            self.marks[frame["topic"]] = (frame["epoch"], frame["seq"])
        return frame

    def kinds(self, topic: str) -> list[str]:
        return [frame["type"] for frame in self.frames if frame.get("topic") == topic]


async def drain(box: Outbox, screen: Screen) -> Screen:
    """Shows everything that waits."""
    while True:
        try:
            screen.show(await asyncio.wait_for(box.next(), 0.01))
        except TimeoutError:
            return screen
