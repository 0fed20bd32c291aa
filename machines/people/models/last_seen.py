"""When people were last seen, and which entries of the write buffer have been written."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LastSeen(models.Model):
    """Written by ``machines.people.last_seen`` alone, in batches: some seconds behind, and to the minute."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="last_seen")
    at = models.DateTimeField(help_text="of the last request that was noted, one a minute for each process")
    requests = models.PositiveBigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        verbose_name = verbose_name_plural = "last seen"

    def __str__(self) -> str:
        return f"{self.user_id} at {self.at}"


class Receipt(models.Model):
    """An entry of a write buffer that has been written, kept in the same transaction: one that comes again is left
    out."""

    entry = models.CharField(max_length=150, unique=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.entry
