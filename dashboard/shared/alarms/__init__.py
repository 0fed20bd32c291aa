"""Alarms with the addresses of what they are about."""

from machines.alarms import Alarm, worst_by_machine

from .collection import Alarms, collect_alarms
from .links import link_alarm

__all__ = ["Alarm", "Alarms", "collect_alarms", "link_alarm", "worst_by_machine"]
