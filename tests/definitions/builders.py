"""Small definitions, and what a check says about them."""

from __future__ import annotations

import copy
from typing import Any

from machines.engine.definitions import check

DOOR = {"Shut": {"on": {"open": "Open"}}, "Open": {"on": {"shut": "Shut"}}}


def machine(states: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """A definition without findings, but for what the parts bring in."""
    states = copy.deepcopy(DOOR) if states is None else states
    return {"id": "door", "initial": next(iter(states), ""), "states": states} | parts


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
