"""Signalbox's engine: statecharts that run atomically inside Redis. Needs Redis and nothing else.

from machines.engine import Engine

engine = Engine.from_url("redis://localhost")
engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": "Open"}}, "Open": {}}})
engine.create("door", "front")
engine.fire("door", "front", "open").state  # 'Open'
"""

from . import errors
from .aio.async_engine import AsyncEngine
from .connection.partition_check import PartitionFault
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
from .instances.inspection import Inspection
from .instances.previews import Preview, Wait
from .jobs.mending import MendReport
from .jobs.records import Enqueue, Job, Pause, QueueStats, Taken, WorkerInfo
from .permits import Permit
from .publishing.senders import Acceptance, Senders
from .publishing.sensitive_fields import SensitiveFields
from .records import Because, Candidate, Explanation, Fire, Instance, Live, Outcome, PublishedMachine, Step, Timer
from .search.results import IndexProgress, Page, Problem, Tally
from .search.survey import Survey

__all__ = [
    "Acceptance",
    "AsyncEngine",
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
    "Fire",
    "IndexProgress",
    "Inspection",
    "Instance",
    "InstanceExists",
    "Job",
    "LeaseLost",
    "Live",
    "LookupFailed",
    "MendReport",
    "Miscounted",
    "NeedsApproval",
    "NotAllowed",
    "NotPermitted",
    "Outcome",
    "Page",
    "PartitionFault",
    "Pause",
    "Permit",
    "Preview",
    "Problem",
    "PublishedMachine",
    "QueueStats",
    "Refused",
    "Senders",
    "SensitiveFields",
    "SignalboxError",
    "Step",
    "Survey",
    "Suspended",
    "Taken",
    "Tally",
    "Timer",
    "TooMuchWork",
    "UnknownEvent",
    "UnknownInstance",
    "UnknownMachine",
    "Wait",
    "WorkerInfo",
    "errors",
]
