"""Signalbox's engine: statecharts that run atomically inside Redis. Needs Redis and nothing else.

from machines.engine import Engine

engine = Engine.from_url("redis://localhost")
engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": "Open"}}, "Open": {}}})
engine.create("door", "front")
engine.fire("door", "front", "open").state  # 'Open'
"""

from . import errors
from .engine import Engine
from .errors import (
    BadInput,
    BadPayload,
    Conflict,
    DefinitionError,
    EngineFault,
    EngineUnavailable,
    InstanceExists,
    LeaseLost,
    LookupFailed,
    Refused,
    SignalboxError,
    Suspended,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
)
from .records import (
    Because,
    Candidate,
    Explanation,
    Fire,
    Instance,
    Job,
    Live,
    Outcome,
    Page,
    PublishedMachine,
    Step,
    Timer,
    WorkerRow,
)

__all__ = [
    "BadInput",
    "BadPayload",
    "Because",
    "Candidate",
    "Conflict",
    "DefinitionError",
    "Engine",
    "EngineFault",
    "EngineUnavailable",
    "Explanation",
    "Fire",
    "Instance",
    "InstanceExists",
    "Job",
    "LeaseLost",
    "Live",
    "LookupFailed",
    "Outcome",
    "Page",
    "PublishedMachine",
    "Refused",
    "SignalboxError",
    "Step",
    "Suspended",
    "Timer",
    "UnknownEvent",
    "UnknownInstance",
    "UnknownMachine",
    "WorkerRow",
    "errors",
]
