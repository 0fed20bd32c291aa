"""Names from outside of a text that may be written in it: the language, machines, and handlers."""

from __future__ import annotations

from typing import Any

from machines.catalog.editing.names import vocabulary
from machines.connections import get_engine
from machines.engine import EngineUnavailable
from machines.models import MachineVersion
from machines.people.actor import Actor
from machines.worker.registry import handlers

MOST = 200  # machines whose definitions are looked through


def list_known(actor: Actor) -> dict[str, Any]:
    """``machines`` that the actor sees, ``handlers`` that those invoke or that this process has, and the language."""
    names = {name: number for name, number in _current_versions().items() if actor.may("view", name)}
    names = dict(sorted(names.items())[:MOST])
    found: dict[str, None] = dict.fromkeys(handlers)
    recorded = MachineVersion.objects.filter(machine__name__in=names)
    for name, number, definition in recorded.values_list("machine__name", "number", "definition"):
        if names[name] == number:
            found |= dict.fromkeys(_invoked(definition))
    return vocabulary() | {"machines": list(names), "handlers": sorted(found)}


def _current_versions() -> dict[str, int]:
    try:
        return get_engine().machines()
    except EngineUnavailable:  # what is completed then is the language alone
        return {}


def _invoked(part: Any) -> list[str]:
    """Every ``src`` of a definition."""
    if isinstance(part, dict):
        own = [part["src"]] if isinstance(part.get("src"), str) else []
        return own + [name for value in part.values() for name in _invoked(value)]
    return [name for value in part for name in _invoked(value)] if isinstance(part, list) else []
