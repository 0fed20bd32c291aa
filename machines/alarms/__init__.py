"""What needs attention now: alarms with severity, age and what they join, made of the figures of all machines."""

from .alarm import CRITICAL, INFO, KINDS, MANY, SEVERITIES, WARNING, Alarm, read_machine, sort_alarms, worst_by_machine
from .detection import LostSchedule, Stuck, raise_alarms
from .workers import SILENT_AFTER, is_alive

__all__ = [
    "CRITICAL",
    "INFO",
    "KINDS",
    "MANY",
    "SEVERITIES",
    "SILENT_AFTER",
    "WARNING",
    "Alarm",
    "LostSchedule",
    "Stuck",
    "is_alive",
    "raise_alarms",
    "read_machine",
    "sort_alarms",
    "worst_by_machine",
]
