"""Signalbox's engine: statecharts that run atomically inside Redis. Needs Redis and nothing else.

from machines.engine import Engine

engine = Engine.from_url("redis://localhost")
engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": "Open"}}, "Open": {}}})
engine.create("door", "front")
engine.fire("door", "front", "open").state  # 'Open'
"""

from typing import TYPE_CHECKING, Any

from . import errors
from .connection.partition_check import PartitionFault
from .connection.retries import retry_for
from .engine import Engine
from .errors import (
    BadInput,
    BadPayload,
    Conflict,
    DefinitionError,
    EncryptionFailed,
    EngineFault,
    EngineUnavailable,
    InstanceExists,
    JobHandled,
    LeaseLost,
    LibraryNotLoaded,
    LookupFailed,
    Miscounted,
    NeedsApproval,
    NotAllowed,
    NotPermitted,
    PlanError,
    Refused,
    SignalboxError,
    Suspended,
    TooMuchWork,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
    VersionRefused,
)
from .instances.inspection import Inspection
from .instances.repairs import HoldOptions, Preview, RepairOptions, Wait
from .jobs.mending import MendReport
from .jobs.queue_operations import QueueOptions
from .jobs.records import Enqueue, EnqueueOptions, Job, JobBatch, Pause, QueueStats, Taken, WorkerInfo
from .permits import Permit
from .publishing.machine_meta import SensitiveFields
from .records import Because, Candidate, Explanation, Fire, Instance, Live, Outcome, PublishedMachine, Step, Timer
from .search.filters import SearchTerms
from .search.page_merge import IndexProgress, Page, Problem, Tally
from .search.survey import Survey
from .simulation import SimulatedStep
from .verification.report import VerificationFinding
from .versions.planning.plan import MigrationPlan, SourcePlan
from .versions.records import Change, DefinitionDiff, Divergence, Replay, StepOutcome
from .versions.rollout.records import Attempts, Guard, Rollout, StateTime, VersionFigures, VersionPin, Withdrawal
from .versions.rollout.rollouts import PolicyOptions

if TYPE_CHECKING:
    from .aio.async_engine import AsyncEngine

__all__ = [
    "AsyncEngine",
    "Attempts",
    "BadInput",
    "BadPayload",
    "Because",
    "Candidate",
    "Change",
    "Conflict",
    "DefinitionDiff",
    "DefinitionError",
    "Divergence",
    "EncryptionFailed",
    "Engine",
    "EngineFault",
    "EngineUnavailable",
    "Enqueue",
    "EnqueueOptions",
    "Explanation",
    "Fire",
    "Guard",
    "HoldOptions",
    "IndexProgress",
    "Inspection",
    "Instance",
    "InstanceExists",
    "Job",
    "JobBatch",
    "JobHandled",
    "LeaseLost",
    "LibraryNotLoaded",
    "Live",
    "LookupFailed",
    "MendReport",
    "MigrationPlan",
    "Miscounted",
    "NeedsApproval",
    "NotAllowed",
    "NotPermitted",
    "Outcome",
    "Page",
    "PartitionFault",
    "Pause",
    "Permit",
    "PlanError",
    "PolicyOptions",
    "Preview",
    "Problem",
    "PublishedMachine",
    "QueueOptions",
    "QueueStats",
    "Refused",
    "RepairOptions",
    "Replay",
    "Rollout",
    "SearchTerms",
    "SensitiveFields",
    "SignalboxError",
    "SimulatedStep",
    "SourcePlan",
    "StateTime",
    "Step",
    "StepOutcome",
    "Survey",
    "Suspended",
    "Taken",
    "Tally",
    "Timer",
    "TooMuchWork",
    "UnknownEvent",
    "UnknownInstance",
    "UnknownMachine",
    "VerificationFinding",
    "VersionFigures",
    "VersionPin",
    "VersionRefused",
    "Wait",
    "Withdrawal",
    "WorkerInfo",
    "errors",
    "retry_for",
]


def __getattr__(name: str) -> Any:
    """Import what a program without an event loop does not need."""
    if name == "AsyncEngine":
        from .aio.async_engine import AsyncEngine

        globals()[name] = AsyncEngine
        return AsyncEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
