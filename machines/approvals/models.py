"""Approval requests: the action that a person requested, and the decision of another person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.utils import timezone

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField
from machines.conf.encryption.ciphers import Unreadable, demand_readable
from machines.conf.encryption.fields import EncryptedDocumentField
from machines.engine.limits import MAX_INSTANCE_ID

UNKNOWN = "the result is unknown; check the instance"
"""The outcome of what was begun and not heard of again."""
LASTS = timedelta(days=1)  # after which nobody may approve it any more
CUT_OFF = timedelta(minutes=5)  # after which nobody is taken to be doing it any more
EXPIRED = "expired without a decision"


def end_of_request() -> datetime:
    return timezone.now() + LASTS


class Approval(BaseModel):
    """Written by ``machines.approvals.actions`` alone.

    People are kept as text, as the audit keeps them. ``asked`` holds what the action takes until the request is
    decided: it may hold what only few may see, and is emptied then.
    """

    class State(models.TextChoices):
        OPEN = "open", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        DECLINED = "declined", "declined"
        WITHDRAWN = "withdrawn", "withdrawn"
        EXPIRED = "expired", "expired"

    machine = models.CharField(max_length=64)
    instance = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    bulk = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="", help_text="in place of an instance")
    action = models.CharField(max_length=120, help_text="such as delete or fire:refund")
    asked = EncryptedDocumentField(
        purpose="approval.asked", default=dict, blank=True, help_text="parameters; emptied after the decision"
    )
    target = models.TextField(blank=True, default="", help_text="the event, the states, or the job")
    expect = models.PositiveBigIntegerField(null=True, blank=True, help_text="the revision it was requested for")
    reason = models.TextField()
    asker = models.CharField(max_length=150)
    asker_id = models.CharField(max_length=40)
    groups = DocumentField(default=list, blank=True, help_text="an approver is a member of each")
    quorum = models.PositiveSmallIntegerField(default=1, help_text="how many people approve it")
    asked_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=end_of_request)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    decider = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True, default="", help_text="decision note")
    outcome = models.TextField(blank=True, default="", help_text="result")
    code = models.CharField(max_length=40, blank=True, default="", help_text="of the error it failed with")

    class Meta(BaseModel.Meta):
        ordering = ["-asked_at", "-id"]
        indexes = [
            models.Index(fields=["state", "-asked_at", "-id"], name="approval_by_state"),
            models.Index(fields=["machine", "instance", "state"], name="approval_by_instance"),
        ]

    def __str__(self) -> str:
        return f"{self.action} on {self.subject} requested by {self.asker} ({self.state})"

    @classmethod
    def from_db(cls, db: Any, field_names: Any, values: Any, **options: Any) -> Approval:
        """Read a request as it is now. What time alone has changed, a worker writes down later: reads write nothing."""
        found: Approval = super().from_db(db, field_names, values, **options)
        if not {"state", "expires_at", "decided_at"} <= found.__dict__.keys():
            return found
        now = timezone.now()
        if found.state == cls.State.OPEN and found.expires_at <= now:
            found.state, found.decided_at, found.outcome, found.asked = cls.State.EXPIRED, found.expires_at, EXPIRED, {}
        elif found.state == cls.State.RUNNING and found.decided_at and found.decided_at <= now - CUT_OFF:
            found.state, found.outcome, found.asked = cls.State.FAILED, UNKNOWN, {}
        elif isinstance(found.__dict__.get("asked"), Unreadable):
            found.outcome = found.asked
        return found

    @classmethod
    def in_state(cls, *states: str) -> models.Q:
        """Return the condition for requests that are in one of these states now, whatever is written down yet."""
        now = timezone.now()
        over = models.Q(state=cls.State.OPEN, expires_at__lte=now)
        lost = models.Q(state=cls.State.RUNNING, decided_at__lte=now - CUT_OFF)
        found = models.Q(state__in=states) & ~over & ~lost
        if cls.State.EXPIRED in states:
            found |= over
        if cls.State.FAILED in states:
            found |= lost
        return found

    @property
    def word(self) -> str:
        """Its state, for people."""
        is_known = self.state != self.State.FAILED or self.outcome != UNKNOWN
        return self.get_state_display() if is_known else "not known"

    @property
    def name(self) -> str:
        """The action: ``fire``, or the name of a repair."""
        return self.action.partition(":")[0]

    @property
    def is_of_versions(self) -> bool:
        """Whether it changes which versions of the machine count, or who may change that."""
        return self.name == "publish" or self.name.startswith(("version.", "rollout."))

    @property
    def right(self) -> str:
        """What it takes to ask for it, and to decide it."""
        if self.is_of_versions:
            return "publish"
        return "fire" if self.name == "fire" and not self.bulk else "operate"

    @property
    def subject(self) -> str:
        if self.is_of_versions:
            return f"{self.target} of {self.machine}" if self.target else self.machine
        return f"{self.machine}/{self.instance}" if self.instance else f"bulk {self.bulk} of {self.machine}"

    @property
    def draft(self) -> int | None:
        """The number of the draft that is to be published; None for other actions."""
        number = self.target.removeprefix("draft ") if self.name == "publish" else ""
        return int(number) if number.isdigit() else None

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN and timezone.now() < self.expires_at

    def demand_readable(self) -> None:
        """Raise SecretUnreadable where the key of ``asked`` is gone."""
        demand_readable(f"what request {self.pk} asks for", self.asked)

    def facts(self) -> dict[str, Any]:
        """Return the facts for the audit: all but what was asked for in detail."""
        return {"approval": self.pk, "action": self.action, "asker": self.asker, "expect": self.expect}


class ApprovalVote(BaseModel):
    """One of the approvals that a request with a quorum takes: one for each person. It counts as long as the person may
    approve the request."""

    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="votes")
    voter = models.CharField(max_length=150)
    voter_id = models.CharField(max_length=40)
    note = models.TextField(blank=True, default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta(BaseModel.Meta):
        ordering = ["at", "id"]
        constraints = [models.UniqueConstraint(fields=["approval", "voter_id"], name="one_vote_of_a_person")]
