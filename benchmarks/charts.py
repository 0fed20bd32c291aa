"""What nesting costs: the same step in a flat machine, a compound one and a parallel one, by the server's own time.

Beside each, the same transition written by hand in Lua (``handwritten_charts.lua``), with the same writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .report import Row, Section
from .rounds import interleave
from .stage import BATCH, PREFIX, Stage

INSTANCES = 500
CALLS = 10_000  # in one measurement
REGIONS = (1, 2, 3)
HANDWRITTEN = Path(__file__).with_name("handwritten_charts.lua")


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


def refusing(definition: dict[str, Any], state: dict[str, Any], target: str, field: str) -> dict[str, Any]:
    """The same machine with an event that a guard of the state always refuses."""
    state["on"]["refused"] = {"target": target, "guard": f"{field} < 0"}
    return definition | {"id": f"{definition['id']}-refusing"}


def _answered() -> dict[str, tuple[dict[str, Any], str]]:
    """Title -> definition, and an event that is taken again and again."""
    one, three = flat(), parallel("one", ("g1", "g2", "g3"))
    region = three["states"]["Around"]["states"]["Inside"]["states"]["R1"]["states"]
    for states in (one["states"].values(), region.values()):
        for state in states:
            for transition in state["on"].values():
                del transition["target"]
    return {
        "flat": (refusing(one, one["states"]["A"], "B", "n"), "go"),
        "parallel": (refusing(three, region["a1"], "b1", "n1"), "g1"),
    }


class Charts:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def sections(self, rounds: int) -> list[Section]:
        return [self._steps(rounds), self._answers(rounds)]

    def _steps(self, rounds: int) -> Section:
        self._stage.engine.client.function_load(HANDWRITTEN.read_text(encoding="utf-8"), replace=True)
        contenders = {}
        for title, (definition, events) in CONTENDERS.items():
            root, ids = self._prepare(definition)
            turns = [(event,) for event in events]
            contenders[title] = self._contender("sb_fire", root, ids, turns)
            if title != "flat":
                peer = self._copy(definition, ids)
                contenders[f"{title}, by hand"] = self._contender(f"bench_{definition['id']}", peer, ids, turns)
        found = interleave(rounds, contenders)
        rows = [Row(title, 1e6 / found[title].rate, unit="µs") for title in CONTENDERS]
        for row in rows[1:]:
            row.ratios["flat"] = 1 / found[row.title].against(found["flat"])
            row.ratios["hand-written"] = found[row.title].against(found[f"{row.title}, by hand"])
        note = "µs of the server's CPU a step, call included."
        return Section("What a step of a chart costs the server", rows, note)

    def _answers(self, rounds: int) -> Section:
        """What is answered where no step is taken, beside a step that is."""
        contenders = {}
        for title, (definition, event) in _answered().items():
            root, ids = self._prepare(definition)
            calls = {
                "taken": ("sb_fire", event),
                "refused by a guard": ("sb_fire", "refused"),
                "unknown event": ("sb_fire", "other"),
                "conflict of revisions": ("sb_fire", event, "", "9999999"),
            }
            for name, (function, *words) in calls.items():
                contenders[f"{name}: {title}"] = self._contender(function, root, ids, [words], refused=True)
        found = interleave(rounds, contenders)
        rows = []
        for title in contenders:
            taken = f"taken: {title.partition(': ')[2]}"
            rows.append(Row(title, 1e6 / found[title].rate, unit="µs"))
            if title != taken:
                rows[-1].ratios["taken"] = 1 / found[title].against(found[taken])
        return Section("What an answer without a step costs the server", rows, "µs of the server's CPU a call.")

    def _prepare(self, definition: dict[str, Any]) -> tuple[str, list[str]]:
        engine, name = self._stage.engine, definition["id"]
        engine.publish(definition)
        ids = [f"{name}-{number}" for number in range(INSTANCES)]
        for id in ids:
            engine.create(name, id)
        return engine.keys.partition(name).root, ids

    def _copy(self, definition: dict[str, Any], ids: Sequence[str]) -> str:
        """The same instances below a root of the peer."""
        engine, name = self._stage.engine, definition["id"]
        ours, root = engine.keys.partition(name), f"{PREFIX.rstrip(':')}-charts:{{{name}:0}}"
        pipeline = engine.client.pipeline(transaction=False)
        for id in ids:
            pipeline.copy(ours.instance(id), f"{root}:i:{id}", replace=True)
        for leaf in engine.get(name, ids[0]).configuration:
            pipeline.copy(ours.state(leaf), f"{root}:in:{leaf}", replace=True)
        pipeline.execute()
        return root

    def _contender(
        self, function: str, root: str, ids: Sequence[str], turns: Sequence[tuple[str, ...]], refused: bool = False
    ) -> Callable[[], float]:
        """``turns``: the words after the id, in turn; ``refused``: whether they may be."""
        turn = itertools.cycle(turns)

        def run() -> float:
            before = self._stage.cpu()
            for _ in range(CALLS // INSTANCES):
                words = next(turn)
                pipeline = self._stage.engine.client.pipeline(transaction=False)
                for id in ids[:BATCH]:
                    pipeline.fcall(function, 1, root, id, *words)
                if any(reply[0] == "REFUSED" for reply in pipeline.execute()) and not refused:
                    raise RuntimeError(f"{words[0]} was refused in {root}")
            return CALLS / (self._stage.cpu() - before)

        return run
