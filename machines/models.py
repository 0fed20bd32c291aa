"""The tables of this app, gathered from its rooms: Django reads them here, and projects import them from here."""

from machines.alarms.models import AlarmEvent, AlarmState
from machines.approvals.models import Approval
from machines.audit.models import AuditEntry, AuditIsAppendOnly
from machines.catalog.models.coverage import StoredCoverage
from machines.catalog.models.draft import Draft, Editing
from machines.catalog.models.machine import Machine
from machines.catalog.models.stored_plan import StoredPlan
from machines.catalog.models.version import MachineVersion, VersionIsImmutable
from machines.failures.models import FailedJob, FailureAction, FailureGroup, FailureHour, FailurePart, FailurePosition
from machines.instances.models import ArchivedInstance, ArchiveTotal
from machines.integrations.binding.models import OutboxEntry, Reconciliation
from machines.people.models.grant import MachineGroupGrant, MachineUserGrant
from machines.people.models.last_seen import LastSeen, Receipt
from machines.people.models.token import Token
from machines.statistics.models import MeasuredStretch, Measurement, SamplingTurn
from machines.webhooks.models import Delivery, LogCursor, LogGap, Webhook

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
