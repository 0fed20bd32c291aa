"""Tables of people and programs: permissions on one machine, API tokens (only a digest of the secret is stored),
when each was last seen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from machines.conf.base_model import BaseModel


class MachineUserGrant(UserObjectPermissionBase):
    """A user holds a permission on one machine."""

    content_object = models.ForeignKey("machines.Machine", on_delete=models.CASCADE, related_name="user_grants")

    class Meta(UserObjectPermissionBase.Meta):
        default_permissions = ()


class MachineGroupGrant(GroupObjectPermissionBase):
    """Everyone in a group holds a permission on one machine."""

    content_object = models.ForeignKey("machines.Machine", on_delete=models.CASCADE, related_name="group_grants")

    class Meta(GroupObjectPermissionBase.Meta):
        default_permissions = ()


class LastSeen(BaseModel):
    """Written by ``machines.people.last_seen`` alone, to the minute."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="last_seen")
    at = models.DateTimeField(help_text="of the last request that was noted, one a minute for each process")
    requests = models.PositiveBigIntegerField(default=0)

    class Meta(BaseModel.Meta):
        verbose_name = verbose_name_plural = "last seen"

    def __str__(self) -> str:
        return f"{self.user_id} at {self.at}"


class Token(BaseModel):
    """Written by ``machines.people.tokens`` alone.

    ``rights``: names out of ``machines.people.permissions.RIGHTS``; ``machines``: names, none for every machine. What
    a token may
    do is never more than what its owner may do at that moment.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    handle = models.CharField(max_length=12, unique=True, help_text="the public part, which names it in the audit")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the secret part, hexadecimal")
    rights = models.JSONField(default=list)
    machines = models.JSONField(default=list, blank=True, help_text="names; empty: every machine")
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField()
    last_used = models.DateTimeField(null=True, blank=True)
    uses = models.PositiveBigIntegerField(default=0, help_text="requests it has opened")
    revoked = models.DateTimeField(null=True, blank=True)

    class Meta(BaseModel.Meta):
        ordering = ["-created", "-id"]
        default_permissions = ("view",)
        permissions = [("revoke_token", "Can revoke API tokens of others")]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.handle})"

    @classmethod
    def holding(cls, owner: Any, now: datetime | None = None) -> models.QuerySet[Token]:
        """Return the tokens of an account that are neither revoked nor expired."""
        return cls.objects.filter(owner=owner, revoked=None, expires__gt=now or timezone.now())

    def state(self, now: datetime | None = None) -> str:
        """Return ``revoked``, ``expired`` or ``active``; whether the owner is, is another question."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires <= (now or timezone.now()) else "active"

    @property
    def facts(self) -> dict[str, Any]:
        """What the audit and the API say of it."""
        return {
            "handle": self.handle,
            "name": self.name,
            "rights": list(self.rights),
            "machines": list(self.machines),
            "expires": self.expires.isoformat(),
        }
