"""The Django admin, gathered from the rooms. It is read-only, except for firing an event, which goes through the engine
and leaves a log entry, for deciding a request, and for rights on one machine.
"""

from machines.approvals.admin import ApprovalAdmin
from machines.catalog.admin import MachineVersionAdmin
from machines.instances.admin import MachineAdmin
from machines.integrations.binding.admin import OutboxEntryAdmin
from machines.people.admin import AuditEntryAdmin, LastSeenAdmin, TokenAdmin

__all__ = [
    "ApprovalAdmin",
    "AuditEntryAdmin",
    "LastSeenAdmin",
    "MachineAdmin",
    "MachineVersionAdmin",
    "OutboxEntryAdmin",
    "TokenAdmin",
]
