"""A parent that invokes a child, and words to speak of them."""

from __future__ import annotations

from typing import Any

from machines.engine import Engine, Instance

from .builders import fields, machine

WHO = {"actor": "alice", "reason": "r"}


def child(name: str = "child", **states: Any) -> dict[str, Any]:
    """Counts ``hit``; ``end`` finishes it with the count doubled."""
    on = {
        "hit": {"actions": {"set": {"n": "n + 1"}}},
        "end": "Z",
        "say": {"actions": {"send": {"event": "said", "to": "'#_parent'", "data": {"n": "n"}}}},
    }
    final = {"type": "final", "output": {"twice": "n * 2"}}
    return machine(name, {"A": {"on": on}, "Z": final} | states, context={"n": 0})


def parent(name: str = "parent", **invoke: Any) -> dict[str, Any]:
    """``start`` begins a child, ``quit`` leaves it; ``pass`` sends it an event."""
    done = {"target": "Done", "actions": {"set": {"got": "event.twice"}}}
    failed = {"target": "Failed", "actions": {"set": {"why": "event.message"}}}
    invoke = {"src": "machine:child", "id": "k", "onDone": done, "onError": failed} | invoke
    on = {
        "quit": "Idle",
        "pass": {"actions": {"send": {"event": {"expr": "event.name"}, "to": "'#_k'"}}},
        "said": {"actions": {"append": {"heard": "event.n"}}},
    }
    states = {
        "Idle": {"on": {"start": "Busy"}},
        "Busy": {"invoke": invoke, "on": on},
        "Done": {"on": {"start": "Busy"}},
        "Failed": {},
    }
    properties = {
        "got": {},
        "why": {"type": "string", "default": ""},
        "heard": {"type": "array", "default": []},
        "start": {"default": 5},
    }
    return machine(name, states, context=fields(**properties))


def only(engine: Engine, name: str = "child") -> Instance:
    """The one instance there is of a machine."""
    (instance,) = engine.find(name)
    return instance


def tell(engine: Engine, event: str, id: str = "p") -> Instance:
    """Have the parent send its child an event."""
    return engine.fire("parent", id, "pass", {"name": event})
