"""One event in the history of an alarm."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .state import KEY_LENGTH


class AlarmEvent(models.Model):
    """Written by ``machines.alarms.recording`` alone. ``actor``: "" for what a worker noticed. ``owner``: of an
    assignment, "" where the alarm was given up; ``until``: of a snooze."""

    class Event(models.TextChoices):
        RAISED = "raised", "raised"
        WORSENED = "worsened", "worsened"
        CLEARED = "cleared", "cleared"
        ACKNOWLEDGED = "acknowledged", "acknowledged"
        ASSIGNED = "assigned", "assigned"
        SNOOZED = "snoozed", "snoozed"
        WOKEN = "woken", "snooze ended"
        EXPIRED = "expired", "snooze expired"

    at = models.DateTimeField(default=timezone.now)
    key = models.CharField(max_length=KEY_LENGTH)
    kind = models.CharField(max_length=20)
    machine = models.CharField(max_length=64, blank=True, default="")
    severity = models.CharField(max_length=8)
    text = models.TextField()
    event = models.CharField(max_length=12, choices=Event.choices)
    actor = models.CharField(max_length=150, blank=True, default="")
    owner = models.CharField(max_length=150, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["machine", "-id"], name="alarm_event_by_machine"),
            models.Index(fields=["key", "-id"], name="alarm_event_by_key"),
            models.Index(fields=["at"], name="alarm_event_at"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.event}"
