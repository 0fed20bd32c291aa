from .audit import AuditEntry, AuditIsAppendOnly
from .machine import Machine
from .version import MachineVersion, VersionIsImmutable

__all__ = ["AuditEntry", "AuditIsAppendOnly", "Machine", "MachineVersion", "VersionIsImmutable"]
