"""Small definitions, and what a check says about them."""

from __future__ import annotations

import copy
from typing import Any

from machines.engine.definitions import check

DOOR = {"Shut": {"on": {"open": "Open"}}, "Open": {"on": {"shut": "Shut"}}}
PLAYER = {
    "off": {"on": {"power": "on", "resume": "on.last"}},
    "on": {
        "type": "parallel",
        "on": {"power": "off"},
        "onDone": "end",
        "states": {
            "last": {"type": "history", "history": "deep"},
            "volume": {
                "initial": "idle",
                "states": {"idle": {"on": {"up": "loud"}}, "loud": {"on": {"down": "idle", "stop": "silent"}}}
                | {"silent": {"type": "final", "output": {"was": "'loud'"}}},
            },
            "track": {
                "initial": {"target": "idle", "actions": {"log": "'ready'"}},
                "states": {"idle": {"on": {"play": "playing"}}, "playing": {"on": {"stop": "over"}}}
                | {"over": {"type": "final"}},
            },
        },
    },
    "end": {"type": "final"},
}


def machine(states: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """A definition without findings, but for what the parts bring in."""
    states = copy.deepcopy(DOOR) if states is None else states
    return {"id": "door", "initial": next(iter(states), ""), "states": states} | parts


def player(states: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """A chart without findings: a parallel state with a history, two regions, and a key that stands twice.

    ``states`` replace or add top states.
    """
    return {"id": "player", "initial": "off", "states": copy.deepcopy(PLAYER) | (states or {})} | parts


def inside(states: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A machine whose first state ``C`` holds the states, with a way out to ``out``."""
    compound = {"initial": next(iter(states), ""), "states": states, "on": {"leave": "out"}} | parts
    return {"id": "m", "initial": "C", "states": {"C": compound, "out": {"type": "final"}}}


def with_transition(transition: Any, **parts: Any) -> dict[str, Any]:
    """A machine whose first state has one transition on ``go``; its data: n, name, tags, extra."""
    context = {"n": 0, "name": "", "tags": [], "extra": None, "ratio": 0.5, "on_air": False, "facts": {}}
    states = {"A": {"on": {"go": transition, "next": "B"}}, "B": {"type": "final"}}
    return {"id": "m", "initial": "A", "context": context, "states": states} | parts


def with_guard(guard: Any, **parts: Any) -> dict[str, Any]:
    return with_transition({"guard": guard, "target": "B"}, **parts)


def with_action(action: Any, **parts: Any) -> dict[str, Any]:
    return with_transition({"actions": action}, **parts)


def found(definition: object) -> list[str]:
    """The findings as people see them."""
    return [str(finding) for finding in check(definition)]


def codes(definition: object) -> list[str]:
    return [finding.code for finding in check(definition)]
