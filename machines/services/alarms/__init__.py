"""Alarms: what needs attention now, who takes care of it, and what was done about it."""

from .actions import LONGEST, SHORTEST, acknowledge, assign, get, history, listed, may_act, snooze, wake
from .collection import detect_alarms
from .duty import record_alarms
from .errors import BadAlarmInput, UnknownAlarm

__all__ = [
    "LONGEST",
    "SHORTEST",
    "BadAlarmInput",
    "UnknownAlarm",
    "acknowledge",
    "assign",
    "detect_alarms",
    "get",
    "history",
    "listed",
    "may_act",
    "record_alarms",
    "snooze",
    "wake",
]
