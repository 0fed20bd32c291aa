from .approval import Approval
from .archive import ArchivedInstance, ArchiveTotal
from .audit import AuditEntry, AuditIsAppendOnly
from .grant import MachineGroupGrant, MachineUserGrant
from .last_seen import LastSeen, Receipt
from .machine import Machine
from .outbox import OutboxEntry
from .statistics import MeasuredStretch, Measurement, SamplingTurn
from .token import Token
from .version import MachineVersion, VersionIsImmutable
from .webhook import Delivery, LogCursor, LogGap, Webhook

__all__ = [
    "Approval",
    "ArchiveTotal",
    "ArchivedInstance",
    "AuditEntry",
    "AuditIsAppendOnly",
    "Delivery",
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
    "SamplingTurn",
    "Token",
    "VersionIsImmutable",
    "Webhook",
]
