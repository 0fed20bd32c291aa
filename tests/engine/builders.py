"""Small machines the tests share, and a few words to write others with."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from machines.engine import Engine, Instance

NOW = 1_700_000_000_000  # ms: the moment most tests happen in
ROOT = Path(__file__).resolve().parents[2]
_numbers = count(1)


def machine(name: str, states: dict[str, Any], **top: Any) -> dict[str, Any]:
    """A definition whose first state is the initial one."""
    return {"id": name, "initial": next(iter(states)), "states": states, **top}


def fields(**properties: Any) -> dict[str, Any]:
    """A context that declares data fields by schema: a type's name, or the schema itself."""
    schemas = {name: {"type": s} if isinstance(s, str) else s for name, s in properties.items()}
    return {"type": "object", "properties": schemas}


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "examples" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def door(**top: Any) -> dict[str, Any]:
    """Two states, no data."""
    return machine("door", {"Shut": {"on": {"open": "Open"}}, "Open": {"on": {"close": "Shut"}}}, **top)


def counter(**top: Any) -> dict[str, Any]:
    """Counts to three, then refuses; ``stop`` ends it."""
    add = {"guard": "n < 3", "actions": {"set": {"n": "n + 1"}}}
    states = {"On": {"on": {"add": add, "stop": "Off"}}, "Off": {"type": "final"}}
    return machine("counter", states, context={"n": 0}, **top)


def errand(**invoke: Any) -> dict[str, Any]:
    """One state waits for a job on the queue ``work``."""
    work = {"src": "work", "onDone": "Done", "onError": "Failed"} | invoke
    states = {
        "Idle": {"on": {"start": "Busy"}},
        "Busy": {"invoke": work, "on": {"abandon": "Idle"}},
        "Done": {},
        "Failed": {},
    }
    return machine("errand", states)


def unhandled_errand(**invoke: Any) -> dict[str, Any]:
    """An errand that stays in its state when its job died."""
    definition = errand(**invoke)
    del definition["states"]["Busy"]["invoke"]["onError"]
    return definition


def publish(engine: Engine, definition: dict[str, Any], *ids: str, now: int = NOW) -> str:
    """Publish, and create an instance for each id; the machine's name."""
    name = engine.publish(definition).name
    for id in ids:
        engine.create(name, id, now=now)
    return name


def started(engine: Engine, definition: dict[str, Any], id: str = "x", **options: Any) -> Instance:
    """The one instance of a machine just published."""
    return engine.create(publish(engine, definition), id, **({"now": NOW} | options))


def evaluate(engine: Engine, value: Any, payload: dict[str, Any] | None = None, **context: Any) -> Any:
    """What an expression (or any JSON value) is worth, through a machine that sets a field to it.

    ``context`` gives further data fields by example. Raises what ``fire`` raises.
    """
    out = {"go": {"actions": {"set": {"out": value}}}}
    name = f"calc{next(_numbers)}"
    properties = {"out": {}} | {field: {"default": given} for field, given in context.items()}
    definition = machine(name, {"A": {"on": out}, "B": {}}, context={"type": "object", "properties": properties})
    started(engine, definition)
    return engine.fire(name, "x", "go", payload, now=NOW).data.get("out")
