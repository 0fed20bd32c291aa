"""Rows about rows: the outbox of models that show a machine, and the comparisons of models that a machine mirrors."""

from typing import Any

from django.db import models
from django.utils import timezone

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField


class OutboxEntry(BaseModel):
    """A creation, an event, a change of the row or a deletion. Written by this room alone, in the row's transaction.

    ``key`` is the idempotency key it is sent with. ``outcome``: "applied", "exists" (an instance of this id was there),
    "no_field" (the project has no field for it), "approval" (a second person was asked), or the code of the error;
    ``message`` says it in words. ``seen``: the revision of the instance before the first attempt.
    """

    class Kind(models.TextChoices):
        CREATE = "create"
        FIRE = "fire"
        FOLLOW = "follow"
        DELETE = "delete"

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=6, choices=Kind.choices)
    field = models.CharField(max_length=200, help_text="such as shop.Order.status")
    machine = models.CharField(max_length=64)
    instance = models.CharField(max_length=200)
    event = models.CharField(max_length=100, blank=True, default="")
    payload = DocumentField(default=dict, help_text="of an event, or the data of a creation; emptied when it is done")
    expect = models.BigIntegerField(null=True, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="")
    user_id = models.CharField(max_length=64, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    outcome = models.CharField(max_length=10, blank=True, default="")
    message = models.TextField(blank=True, default="")
    revision = models.BigIntegerField(null=True, blank=True, help_text="of the instance afterwards")
    seen = models.BigIntegerField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    claim = models.CharField(max_length=32, blank=True, default="")
    made_at = models.DateTimeField(default=timezone.now)
    tried_at = models.DateTimeField(null=True, blank=True, help_text="the first attempt")
    due = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(BaseModel.Meta):
        verbose_name_plural = "outbox entries"
        indexes = [
            models.Index(fields=["state", "due"], name="outbox_by_state"),
            models.Index(fields=["machine", "instance", "state", "id"], name="outbox_of_instance"),
            models.Index(fields=["ended_at"], name="outbox_by_end"),
        ]

    def __str__(self) -> str:
        what = f"{self.kind} {self.event}".strip()
        return f"{what} on {self.machine} {self.instance}: {self.outcome or self.state}"

    @property
    def waits(self) -> bool:
        """Tell whether it is still to be sent, by what this object knows: ``refresh_from_db()`` asks again."""
        return self.state == self.State.WAITING

    def facts(self) -> dict[str, Any]:
        """Return what the log says of it: nothing of the payload."""
        return {"machine": self.machine, "instance": self.instance, "kind": self.kind, "event": self.event}


class Reconciliation(BaseModel):
    """Of one machine that mirrors rows. Written by the workers that have its model, and by who asks for a run.

    While one runs, ``begun`` is later than ``ended``, and ``held_until`` moves on; of a worker that died it passes, and
    another one begins anew.
    """

    machine = models.CharField(max_length=100, unique=True)
    wanted = models.DateTimeField(
        null=True, help_text="when a person asked for a run; null once it has begun and ended"
    )
    wanted_by = models.CharField(max_length=150, default="")
    begun = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    holder = models.CharField(max_length=200, default="", help_text="the worker of the last run")
    held_until = models.DateTimeField(null=True)
    read = models.PositiveBigIntegerField(default=0, help_text="rows and instances")
    report = DocumentField(default=dict)

    @property
    def error(self) -> str:
        """Say why the last run did not come to its end."""
        return str(self.report.get("error", ""))

    @property
    def took(self) -> float:
        """Return the ms of the last run that ended."""
        return (self.ended - self.begun).total_seconds() * 1000 if self.ended and self.begun else 0.0

    @property
    def is_running(self) -> bool:
        return self.begun is not None and (self.ended is None or self.ended < self.begun)
