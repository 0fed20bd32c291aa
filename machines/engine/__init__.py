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
from .instances.previews import Preview, Wait
from .jobs.mending import Mended
from .jobs.records import Enqueue, Job, Pause, QueueStats, Taken, WorkerRow
from .permits import Permit
from .publishing.senders import Acceptance, Senders
from .publishing.sensitive_fields import Sensitive
from .records import Because, Candidate, Explanation, Fire, Instance, Live, Outcome, PublishedMachine, Step, Timer
from .search.results import Filling, Page, Tally, Trouble
from .search.survey import Survey

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
