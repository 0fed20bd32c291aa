from .approval import Approval
from .audit import AuditEntry, AuditIsAppendOnly
from .grant import MachineGroupGrant, MachineUserGrant
from .machine import Machine
from .statistics import CounterReading, Measurement, SamplingTurn
from .token import Token
from .version import MachineVersion, VersionIsImmutable
from .webhook import Delivery, LogCursor, LogGap, Webhook

__all__ = [
    "Approval",
    "AuditEntry",
    "AuditIsAppendOnly",
    "CounterReading",
    "Delivery",
    "LogCursor",
    "LogGap",
    "Machine",
    "MachineGroupGrant",
    "MachineUserGrant",
    "MachineVersion",
    "Measurement",
    "SamplingTurn",
    "Token",
    "VersionIsImmutable",
    "Webhook",
]
