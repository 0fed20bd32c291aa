from .machine import Machine
from .version import MachineVersion, VersionIsImmutable

__all__ = ["Machine", "MachineVersion", "VersionIsImmutable"]
