"""The tables of this app, gathered from its rooms: Django reads them here, and projects import them from here."""

from machines.alarms.models import AlarmEvent, AlarmNotice, AlarmRoute, AlarmState
from machines.approvals.models import Approval, ApprovalVote
from machines.audit.models import AuditEntry, AuditHead, AuditIsAppendOnly, AuditReceiver
from machines.catalog.models import (
    Draft,
    Editing,
    Machine,
    MachineVersion,
    StoredCoverage,
    StoredPlan,
    VersionIsImmutable,
)
from machines.insight.models import InsightManifest, InsightPart
from machines.insight.statistics.models import CounterReading, Measurement, SamplingTurn
from machines.instances.models import ArchivedInstance, ArchiveTotal
from machines.integrations.binding.models import OutboxEntry, Reconciliation
from machines.jobs.failures.models import (
    FailedJob,
    FailureAction,
    FailureGroup,
    FailureHour,
    FailurePart,
    FailurePosition,
)
from machines.people.models import LastSeen, MachineGroupGrant, MachineUserGrant, Token
from machines.webhooks.models import Delivery, LogCursor, LogGap, Webhook

__all__ = [
    "AlarmEvent",
    "AlarmNotice",
    "AlarmRoute",
    "AlarmState",
    "Approval",
    "ApprovalVote",
    "ArchiveTotal",
    "ArchivedInstance",
    "AuditEntry",
    "AuditHead",
    "AuditIsAppendOnly",
    "AuditReceiver",
    "CounterReading",
    "Delivery",
    "Draft",
    "Editing",
    "FailedJob",
    "FailureAction",
    "FailureGroup",
    "FailureHour",
    "FailurePart",
    "FailurePosition",
    "InsightManifest",
    "InsightPart",
    "LastSeen",
    "LogCursor",
    "LogGap",
    "Machine",
    "MachineGroupGrant",
    "MachineUserGrant",
    "MachineVersion",
    "Measurement",
    "OutboxEntry",
    "Reconciliation",
    "SamplingTurn",
    "StoredCoverage",
    "StoredPlan",
    "Token",
    "VersionIsImmutable",
    "Webhook",
]
