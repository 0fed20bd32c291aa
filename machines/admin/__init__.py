"""The Django admin of machines and of the audit. It is read-only, except for publishing a definition and firing an
event.

Both go through the same doors as everything else, ``machines.catalog.publishing`` and the engine, and both leave a
log entry.
"""

from .audit import AuditEntryAdmin
from .last_seen import LastSeenAdmin
from .machine import MachineAdmin
from .outbox import OutboxEntryAdmin
from .token import TokenAdmin
from .version import MachineVersionAdmin

__all__ = ["AuditEntryAdmin", "LastSeenAdmin", "MachineAdmin", "MachineVersionAdmin", "OutboxEntryAdmin", "TokenAdmin"]
