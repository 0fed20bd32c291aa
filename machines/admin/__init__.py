"""The Django admin of machines and of the audit. It is read-only, except for publishing a definition and firing an
event.

Both go through the same doors as everything else, ``machines.catalog.publishing`` and the engine, and both leave a
log entry.
"""

from .machine import MachineAdmin
from .records import AuditEntryAdmin, LastSeenAdmin, MachineVersionAdmin, OutboxEntryAdmin, TokenAdmin

__all__ = ["AuditEntryAdmin", "LastSeenAdmin", "MachineAdmin", "MachineVersionAdmin", "OutboxEntryAdmin", "TokenAdmin"]
