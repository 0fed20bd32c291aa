"""Webhooks, their deliveries, and how far the logs were read."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField
from machines.conf.encryption.ciphers import Unreadable, demand_readable
from machines.conf.encryption.fields import EncryptedTextField
from machines.engine.limits import MAX_INSTANCE_ID


class Webhook(BaseModel):
    """Written by ``machines.webhooks`` alone. The database holds address and secrets encrypted."""

    name = models.CharField(max_length=80, unique=True)
    url = EncryptedTextField(purpose="webhook.url")
    machines = DocumentField(default=list, blank=True, help_text="names; none: those of every machine")
    types = DocumentField(default=list, help_text="of messages, * stands for any characters")
    secret = EncryptedTextField(purpose="webhook.secret")
    former = EncryptedTextField(
        purpose="webhook.former", blank=True, default="", help_text="the secret before it was rotated"
    )
    former_until = models.DateTimeField(null=True, blank=True)
    active = models.BooleanField(default=True)
    stopped = models.TextField(blank=True, default="", help_text="why it was disabled automatically")
    since = models.BigIntegerField(default=0, help_text="ms by Redis' clock: messages from then on are sent")
    failures = models.PositiveIntegerField(default=0, help_text="attempts that failed since one got through")
    rest_until = models.DateTimeField(null=True, blank=True)
    for_alarms = models.BooleanField(default=False, help_text="the receiver of a route of alarms: no page of webhooks")
    maker = models.CharField(max_length=150)
    made_at = models.DateTimeField(default=timezone.now)

    class Meta(BaseModel.Meta):
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def list_emitting(cls) -> models.QuerySet[Webhook]:
        """List those that messages of machines are for: active, and no receivers of alarms."""
        return cls.objects.filter(active=True, for_alarms=False)

    @property
    def decryption_error(self) -> str:
        """Why address or secret cannot be decrypted, "" where they can."""
        return next((value for value in (self.url, self.secret) if isinstance(value, Unreadable)), "")

    def secrets(self, now: datetime) -> list[str]:
        """Return those that a message is signed with, the new one first. A former one that cannot be decrypted is left
        out. Raises SecretUnreadable."""
        demand_readable(f"the address or secret of {self.name}", self.url, self.secret)
        still = self.former and self.former_until is not None and now < self.former_until
        still = still and not isinstance(self.former, Unreadable)
        return [self.secret, self.former] if still else [self.secret]


class Delivery(BaseModel):
    """One message for one webhook: there is never a second row of the two."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        SENDING = "sending", "sending"
        SENT = "sent", "sent"
        DEAD = "dead", "failed"

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    message = models.CharField(max_length=120, help_text="machine, partition and place in the log")
    key = models.CharField(max_length=40, unique=True, help_text="webhook-id: the same with each attempt")
    type = models.CharField(max_length=200)
    machine = models.CharField(max_length=64, blank=True, default="")
    instance = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    body = models.TextField(help_text="the very bytes that are signed and sent; JSON in ASCII")
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    due = models.DateTimeField(default=timezone.now, help_text="of the next attempt, or when one under way is lost")
    claim = models.CharField(max_length=32, blank=True, default="", help_text="of who sends it now")
    tries = models.PositiveIntegerField(default=0, help_text="since it was made or sent again by hand")
    attempts = DocumentField(default=list, blank=True, help_text="at, status, ms and error of each, oldest first")
    made_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(BaseModel.Meta):
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [models.UniqueConstraint(fields=["webhook", "message"], name="one_delivery_of_a_message")]
        indexes = [
            models.Index(fields=["state", "due"], name="delivery_by_due"),
            models.Index(fields=["webhook", "state", "-id"], name="delivery_by_webhook"),
            models.Index(fields=["made_at"], name="delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook_id} ({self.state})"

    @property
    def last(self) -> dict:
        """The newest attempt, {} before there was one."""
        return self.attempts[-1] if self.attempts else {}


class LogCursor(BaseModel):
    """There is a group of readers on the log of a partition, and this is how far it was when that was noted last.
    ``position``: how many entries the log ever got up to there."""

    machine = models.CharField(max_length=64)
    partition = models.PositiveIntegerField()
    read = models.CharField(max_length=44, default="0-0")
    position = models.BigIntegerField(default=0)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["machine", "partition"], name="one_cursor_of_a_log")]


class LogGap(BaseModel):
    """Entries that a log had let go before they were read. What they were, nobody can say."""

    machine = models.CharField(max_length=64)
    partition = models.PositiveIntegerField()
    after = models.CharField(max_length=44)
    lost = models.BigIntegerField(help_text="entries; 0: the log was replaced by another one")
    at = models.DateTimeField(default=timezone.now)

    class Meta(BaseModel.Meta):
        ordering = ["-id"]
