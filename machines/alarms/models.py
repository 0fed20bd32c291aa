"""What people did about alarms, and the history of alarms."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

KEY_LENGTH = 250


class AlarmState(models.Model):
    """The state of an alarm: since when it stands, whose it is, and whether it is acknowledged or snoozed. Written by
    ``machines.alarms.recording`` alone. A row lives as long as its alarm stands or is snoozed.

    ``machine``: "" for an alarm of the whole installation. ``cleared_at``: of an alarm that is over and snoozed. People
    are kept as text, as the audit keeps them.
    """

    key = models.CharField(max_length=KEY_LENGTH, primary_key=True)
    kind = models.CharField(max_length=20)
    machine = models.CharField(max_length=64, blank=True, default="")
    severity = models.CharField(max_length=8)
    text = models.TextField()
    first_seen = models.DateTimeField(default=timezone.now)
    last_seen = models.DateTimeField(default=timezone.now)
    cleared_at = models.DateTimeField(null=True, blank=True)
    owner = models.CharField(max_length=150, blank=True, default="")
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    snoozed_by = models.CharField(max_length=150, blank=True, default="")
    snooze_reason = models.TextField(blank=True, default="")
    snoozed_severity = models.CharField(max_length=8, blank=True, default="", help_text="at the time of the snooze")

    class Meta:
        ordering = ["key"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.key


class AlarmEvent(models.Model):
    """One event in the history of an alarm. Written by ``machines.alarms.recording`` alone. ``actor``: "" for what a
    worker noticed. ``owner``: of an assignment, "" where the alarm was given up; ``until``: of a snooze."""

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
