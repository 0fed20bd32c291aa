"""What nesting costs: the same step in a flat machine, a compound one and a parallel one, by the server's own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .report import Row, Section
from .rounds import interleave
from .stage import BATCH, Stage

INSTANCES = 500
CALLS = 10_000  # in one measurement
REGIONS = (1, 2, 3)


def _toggle(event: str, to: str, field: str) -> dict[str, Any]:
    return {"on": {event: {"target": to, "actions": {"set": {field: f"{field} + 1"}}}}}


def flat() -> dict[str, Any]:
    states = {"A": _toggle("go", "B", "n"), "B": _toggle("go", "A", "n")}
    return {"id": "flat", "initial": "A", "context": {"n": 0}, "states": states}


def compound() -> dict[str, Any]:
    """Every step leaves two levels of states and enters two others."""
    states = {
        "Left": {"initial": "l", "states": {"l": _toggle("go", "#r", "n")}},
        "Right": {"initial": "r", "states": {"r": _toggle("go", "#l", "n")}},
    }
    return {"id": "compound", "initial": "Left", "context": {"n": 0}, "states": states}


def parallel(name: str, events: Sequence[str]) -> dict[str, Any]:
    """Three regions, each with its own event (or all with one), a history, and a way out and back."""
    regions: dict[str, Any] = {}
    for number, event in zip(REGIONS, events, strict=True):
        one, other, field = f"a{number}", f"b{number}", f"n{number}"
        states = {one: _toggle(event, other, field), other: _toggle(event, one, field)}
        regions[f"R{number}"] = {"initial": one, "states": states}
    inside = {"type": "parallel", "states": regions, "on": {"leave": "Outside"}}
    states = {
        "Around": {
            "initial": "Inside",
            "states": {"Inside": inside, "last": {"type": "history", "history": "deep"}},
            "on": {"leave": "Outside"},
        },
        "Outside": {"on": {"back": "#last"}},
    }
    return {"id": name, "initial": "Around", "context": {f"n{n}": 0 for n in REGIONS}, "states": states}


#: title -> definition, and the events each instance gets in turn
CONTENDERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "flat": (flat(), ("go",)),
    "compound, two levels left and two entered": (compound(), ("go",)),
    "parallel, one of three regions moves": (parallel("one", ("g1", "g2", "g3")), ("g1", "g2", "g3")),
    "parallel, all three regions move": (parallel("all", ("go", "go", "go")), ("go",)),
    "parallel, left and entered again by its history": (parallel("history", ("x", "y", "z")), ("leave", "back")),
}


class Charts:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def section(self, rounds: int) -> Section:
        found = interleave(rounds, {title: self._contender(*what) for title, what in CONTENDERS.items()})
        rows = [Row(title, 1e6 / found[title].rate, unit="µs") for title in CONTENDERS]
        for row in rows[1:]:
            row.ratios["flat"] = 1 / found[row.title].against(found["flat"])
        return Section("What a step of a chart costs the server", rows, "µs of the server's CPU a step, call included.")

    def _contender(self, definition: dict[str, Any], events: Sequence[str]) -> Callable[[], float]:
        engine, name = self._stage.engine, definition["id"]
        engine.publish(definition)
        ids = [f"{name}-{number}" for number in range(INSTANCES)]
        for id in ids:
            engine.create(name, id)
        root, turn = engine.keys.partition(name).root, 0

        def run() -> float:
            nonlocal turn
            before = self._stage.cpu()
            for _ in range(CALLS // INSTANCES):
                event, turn = events[turn % len(events)], turn + 1
                self._fire(root, ids, event)
            return CALLS / (self._stage.cpu() - before)

        return run

    def _fire(self, root: str, ids: Sequence[str], event: str) -> None:
        pipeline = self._stage.engine.client.pipeline(transaction=False)
        for id in ids[:BATCH]:
            pipeline.fcall("sb_fire", 1, root, id, event)
        if any(reply[0] != "OK" for reply in pipeline.execute()):
            raise RuntimeError(f"{event} was refused in {root}")
