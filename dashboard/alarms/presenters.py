"""Presents the history of alarms."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.shared.times.times import in_ms
from machines.models import AlarmEvent


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One event. ``at``, ``until``: ms; ``until`` is None for anything but a snooze."""

    event: AlarmEvent
    at: int
    until: int | None

    @property
    def word(self) -> str:
        """Return what happened: ``acknowledged``, ``assigned to ann``, ``given up``."""
        if self.event.event == AlarmEvent.Event.ASSIGNED:
            return f"assigned to {self.event.owner}" if self.event.owner else "given up"
        return str(self.event.get_event_display())


def make_row(event: AlarmEvent) -> HistoryRow:
    """Present one event of the history."""
    return HistoryRow(event, in_ms(event.at), in_ms(event.until) if event.until else None)
