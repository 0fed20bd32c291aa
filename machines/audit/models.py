"""Audit entries: who did what, with which outcome. Written once, never changed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField
from machines.conf.encryption.ciphers import Unreadable
from machines.engine.limits import MAX_INSTANCE_ID


def describe_address(url: str) -> dict[str, str]:
    """Return what the audit says of an address: its scheme, host and port, and a fingerprint of the whole.

    Path and query often hold a secret of the receiver's. The same address has the same fingerprint, by which two
    entries can be compared; it takes this site's ``SECRET_KEY``, so that nobody can try out addresses against it.
    """
    if isinstance(url, Unreadable):
        return {"url": str(url)}
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        origin = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        origin = ""
    digest = salted_hmac("machines.webhooks.address", url, algorithm="sha1").hexdigest()
    return {"url": origin, "fingerprint": digest[:16]}


class AuditIsAppendOnly(TypeError):
    """An entry of the audit was about to be changed or deleted."""


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def update(self, **values: Any) -> int:
        raise AuditIsAppendOnly(f"audit entries cannot be changed: {', '.join(sorted(values))}")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise AuditIsAppendOnly("audit entries cannot be deleted")

    def bulk_update(self, *args: Any, **kwargs: Any) -> int:
        raise AuditIsAppendOnly("audit entries cannot be changed")

    def bulk_create(self, *args: Any, **kwargs: Any) -> list[AuditEntry]:
        if kwargs.get("update_conflicts"):
            raise AuditIsAppendOnly("audit entries cannot be changed")
        return super().bulk_create(*args, **kwargs)


class AuditEntry(BaseModel):
    """Written by ``machines.audit.entries`` alone.

    The person is kept as plain text and not as a reference: deleting an account must neither take its entries along
    nor change what is written here. Empty texts say that an action has no such thing.
    """

    class Outcome(models.TextChoices):
        DONE = "done", "done"
        REFUSED = "refused", "refused"
        FAILED = "failed", "failed"

    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150, help_text="user name, as it was then")
    actor_id = models.CharField(max_length=40, blank=True, default="", help_text="of the account, which may be gone")
    action = models.CharField(max_length=40)
    machine = models.CharField(max_length=64, blank=True, default="")
    instance = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    queue = models.CharField(max_length=64, blank=True, default="")
    target = models.TextField(blank=True, default="", help_text="the event, state, job, version or worker it was about")
    reason = models.TextField(blank=True, default="")
    source = models.CharField(max_length=80, blank=True, default="", help_text="page, admin or api, and the address")
    request = models.CharField(
        max_length=40, blank=True, default="", help_text="id of the request that asked for it, if one did"
    )
    outcome = models.CharField(max_length=7, choices=Outcome.choices)
    detail = DocumentField(default=dict, blank=True, help_text="an error's facts, or states and versions")
    number = models.BigIntegerField(null=True, unique=True, editable=False, help_text="its place in the hash chain")
    digest = models.CharField(max_length=64, db_default="", default="", editable=False)

    objects = AuditQuerySet.as_manager()

    class Meta(BaseModel.Meta):
        ordering = ["-at", "-id"]
        default_permissions = ("view",)
        # Whatever goes around the default manager, such as a cascade, meets the same refusals.
        base_manager_name = "objects"
        verbose_name = "audit entry"
        verbose_name_plural = "audit"
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_by_time"),
            models.Index(fields=["actor", "-at", "-id"], name="audit_by_actor"),
            models.Index(fields=["action", "-at", "-id"], name="audit_by_action"),
            models.Index(fields=["machine", "-at", "-id"], name="audit_by_machine"),
            models.Index(fields=["instance", "machine", "-at", "-id"], name="audit_by_instance"),
            models.Index(fields=["request", "-at", "-id"], name="audit_by_request"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor}: {self.action} {self.subject} ({self.outcome})"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AuditIsAppendOnly("an audit entry cannot be changed")
        # Else an entry made with the number of another one would take its place.
        super().save(*args, **kwargs | {"force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AuditIsAppendOnly("an audit entry cannot be deleted")

    @property
    def subject(self) -> str:
        """What it was done to: ``machine/instance``, ``machine/queue``, a worker."""
        return "/".join(part for part in (self.machine, self.queue, self.instance) if part) or self.target

    @property
    def facts(self) -> dict[str, Any]:
        """``detail`` as every door shows it: of a webhook's address, all of which was written before 0.1.0, no path."""
        facts = self.detail if isinstance(self.detail, dict) else {"said": self.detail}
        if self.action.startswith("webhook.") and isinstance(url := facts.get("url"), str):
            return describe_address(url) | facts | {"url": describe_address(url)["url"]}
        return facts


class AuditHead(BaseModel):
    """The head of the hash chain, in one row: number and digest of the newest entry. Written by
    ``machines.audit.chain`` alone."""

    number = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, default="")


class AuditReceiver(BaseModel):
    """How far a receiver of ``AUDIT_STREAM`` has the audit: the number of the last entry it took, and why it takes no
    more. Written by ``machines.webhooks.audit_stream`` alone."""

    name = models.CharField(max_length=300, unique=True)
    number = models.BigIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True, default="")
    since = models.DateTimeField(null=True, blank=True)
