"""The state of an alarm: since when it stands, whose it is, and whether it is acknowledged or snoozed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

KEY_LENGTH = 250


class AlarmState(models.Model):
    """Written by ``machines.alarms.recording`` alone. A row lives as long as its alarm stands or is snoozed.

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
