"""The Django admin of machines and of the audit. It is read-only, except for firing an event, which goes through the
engine and leaves a log entry, and for deciding a request.
"""

from .machine import MachineAdmin
from .records import ApprovalAdmin, AuditEntryAdmin, LastSeenAdmin, MachineVersionAdmin, OutboxEntryAdmin, TokenAdmin

__all__ = [
    "ApprovalAdmin",
    "AuditEntryAdmin",
    "LastSeenAdmin",
    "MachineAdmin",
    "MachineVersionAdmin",
    "OutboxEntryAdmin",
    "TokenAdmin",
]
