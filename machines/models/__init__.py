from .alarms import AlarmEvent, AlarmState
from .approval import Approval
from .archive import ArchivedInstance, ArchiveTotal
from .audit import AuditEntry, AuditIsAppendOnly
from .draft import Draft, Editing
from .failure import FailedJob, FailureAction, FailureGroup, FailureHour, FailurePart, FailurePosition
from .grant import MachineGroupGrant, MachineUserGrant
from .last_seen import LastSeen, Receipt
from .machine import Machine
from .outbox import OutboxEntry, Reconciliation
from .statistics import MeasuredStretch, Measurement, SamplingTurn, StoredCoverage
from .stored_plan import StoredPlan
from .token import Token
from .version import MachineVersion, VersionIsImmutable
from .webhook import Delivery, LogCursor, LogGap, Webhook

__all__ = [
    "AlarmEvent",
    "AlarmState",
    "Approval",
    "ArchiveTotal",
    "ArchivedInstance",
    "AuditEntry",
    "AuditIsAppendOnly",
    "Delivery",
    "Draft",
    "Editing",
    "FailedJob",
    "FailureAction",
    "FailureGroup",
    "FailureHour",
    "FailurePart",
    "FailurePosition",
    "LastSeen",
    "LogCursor",
    "LogGap",
    "Machine",
    "MachineGroupGrant",
    "MachineUserGrant",
    "MachineVersion",
    "MeasuredStretch",
    "Measurement",
    "OutboxEntry",
    "Receipt",
    "Reconciliation",
    "SamplingTurn",
    "StoredCoverage",
    "StoredPlan",
    "Token",
    "VersionIsImmutable",
    "Webhook",
]
