"""Signalbox's engine: statecharts that run atomically inside Redis. Needs Redis and nothing else.

from machines.engine import Engine

engine = Engine.from_url("redis://localhost")
engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": "Open"}}, "Open": {}}})
engine.create("door", "front")
engine.fire("door", "front", "open").state  # 'Open'
"""

from . import errors
from .accepting import Acceptance, Senders
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
    Miscounted,
    NeedsApproval,
    NotAllowed,
    NotPermitted,
    Refused,
    SignalboxError,
    Suspended,
    TooMuchWork,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
)
from .found import Filling, Page, Tally, Trouble
from .jobrecords import Enqueue, Job, Pause, QueueStats, Taken, WorkerRow
from .mending import Mended
from .permits import Permit
from .previews import Preview, Wait
from .records import Because, Candidate, Explanation, Fire, Instance, Live, Outcome, PublishedMachine, Step, Timer
from .sensitive import Sensitive
from .surveying import Survey

__all__ = [
    "Acceptance",
    "BadInput",
    "BadPayload",
    "Because",
    "Candidate",
    "Conflict",
    "DefinitionError",
    "Engine",
    "EngineFault",
    "EngineUnavailable",
    "Enqueue",
    "Explanation",
    "Filling",
    "Fire",
    "Instance",
    "InstanceExists",
    "Job",
    "LeaseLost",
    "Live",
    "LookupFailed",
    "Mended",
    "Miscounted",
    "NeedsApproval",
    "NotAllowed",
    "NotPermitted",
    "Outcome",
    "Page",
    "Pause",
    "Permit",
    "Preview",
    "PublishedMachine",
    "QueueStats",
    "Refused",
    "Senders",
    "Sensitive",
    "SignalboxError",
    "Step",
    "Survey",
    "Suspended",
    "Taken",
    "Tally",
    "Timer",
    "TooMuchWork",
    "Trouble",
    "UnknownEvent",
    "UnknownInstance",
    "UnknownMachine",
    "Wait",
    "WorkerRow",
    "errors",
]
