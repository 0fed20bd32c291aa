"""Stored migration plans: with their dry run, their approval, and the bulk action that moves the instances."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from machines.engine.limits import MAX_INSTANCE_ID

from .document import DocumentField


class StoredPlan(models.Model):
    """Written by ``machines.versions.plans`` alone. The plan itself never changes: another one is another row.

    ``plan``: as ``MigrationPlan.as_dict()`` has it; ``plan_id``: its id, the digest of its content. ``dry_run``: the
    last one, at ``dry_run_at``; it may hold values of instances. ``bulk``: the id of the bulk action that moves the
    instances, ``back``: of the one that moves them back. ``outcome``: the outcomes of the bulk once it has ended.
    """

    machine = models.CharField(max_length=64)
    to = models.PositiveIntegerField(help_text="number of the version to which it moves instances")
    plan = DocumentField()
    plan_id = models.CharField(max_length=12)
    note = models.TextField(blank=True, default="")
    author = models.CharField(max_length=150)
    author_id = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    dry_run = DocumentField(null=True, blank=True)
    dry_run_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=150, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    bulk = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    back = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    outcome = DocumentField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        indexes = [models.Index(fields=["machine", "-created_at", "-id"], name="plan_by_machine")]

    def __str__(self) -> str:
        return f"plan {self.plan_id} of {self.machine} to v{self.to}"
