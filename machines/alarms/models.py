"""What people did about alarms, the history of alarms, and where alarms are sent."""

from django.db import models
from django.utils import timezone

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField
from machines.webhooks.models import Webhook

KEY_LENGTH = 250


class AlarmState(BaseModel):
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
    count = models.PositiveIntegerField(default=0, help_text="jobs, instances or others that it counts")
    episode = models.CharField(max_length=16, default="", help_text="a random name, from raised to cleared")
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

    class Meta(BaseModel.Meta):
        ordering = ["key"]


class AlarmEvent(BaseModel):
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

    class Meta(BaseModel.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["machine", "-id"], name="alarm_event_by_machine"),
            models.Index(fields=["key", "-id"], name="alarm_event_by_key"),
            models.Index(fields=["at"], name="alarm_event_at"),
        ]


class AlarmRoute(BaseModel):
    """Sends alarms to a receiver. Written by ``machines.alarms.routes`` and ``machines.alarms.sending`` alone.

    ``receiver``: its name, its address and secret, whether it is active, and its deliveries.
    """

    receiver = models.OneToOneField(Webhook, on_delete=models.CASCADE, related_name="route")
    severity = models.CharField(max_length=8, default="warning", help_text="the least severe that it gets")
    machines = DocumentField(default=list, help_text="names; none: every machine, and the whole installation")
    kinds = DocumentField(default=list, help_text="none: every kind")
    hours = models.CharField(max_length=200, blank=True, default="", help_text="mon-fri 08:00-18:00; blank: always")
    zone = models.CharField(max_length=64, default="UTC")
    after = models.PositiveIntegerField(default=0, help_text="minutes for which an alarm stands without an owner")
    link = models.TextField(blank=True, default="", help_text="of the page of alarms, as its readers reach it")
    declared = models.BooleanField(default=False, help_text="stands in the settings, and is changed there")
    passes = models.PositiveBigIntegerField(default=0, help_text="messages that were made for it")
    sent_at = models.DateTimeField(null=True, blank=True, help_text="when the last of them was made")

    class Meta(BaseModel.Meta):
        ordering = ["receiver__name"]

    def __str__(self) -> str:
        return self.receiver.name


class AlarmNotice(BaseModel):
    """An episode of an alarm whose begin a route was sent. It goes with the message about the end."""

    route = models.ForeignKey(AlarmRoute, on_delete=models.CASCADE, related_name="notices")
    key = models.CharField(max_length=KEY_LENGTH)
    episode = models.CharField(max_length=16)
    kind = models.CharField(max_length=20)
    machine = models.CharField(max_length=64, blank=True, default="")

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["route", "key", "episode"], name="one_notice_of_an_episode")]
