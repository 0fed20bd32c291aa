"""Machines with timers."""

from __future__ import annotations

from typing import Any

from machines.engine import Instance
from tests.engine.builders import NOW, machine


def lamp(**on: Any) -> dict[str, Any]:
    """Goes out by itself after ten seconds."""
    return machine("lamp", {"On": {"after": {"10s": "Off"}, "on": on or {"hold": "Held"}}, "Off": {}, "Held": {}})


def sender(*actions: Any, **more: Any) -> dict[str, Any]:
    """``go`` runs the actions; what it sends itself is appended to ``got``."""
    listens = {f"e{n}": {"actions": {"append": {"got": f"'e{n}'"}}} for n in range(20)}
    states = {"A": {"on": {"go": {"actions": list(actions)}, **listens, **more}}, "B": {}}
    return machine("sender", states, context={"got": [], "handle": "", "wait": 0})


def due(instance: Instance) -> list[int]:
    """When its timers are due, in ms after NOW."""
    return [timer.due - NOW for timer in instance.timers]
