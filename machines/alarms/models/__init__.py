"""What people did about alarms, and the history of alarms."""

from .event import AlarmEvent
from .state import AlarmState

__all__ = ["AlarmEvent", "AlarmState"]
