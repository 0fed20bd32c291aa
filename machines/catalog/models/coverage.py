"""Reports of test coverage, one for each definition."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .document import DocumentField


class StoredCoverage(models.Model):
    """The latest report for a definition. ``digest``: of its program, as ``MachineVersion.digest``, so that a report
    never counts for a version with other transitions. ``numbers``: ``machines.catalog.coverage.Coverage.as_dict``."""

    machine = models.CharField(max_length=64)
    digest = models.CharField(max_length=12)
    numbers = DocumentField(default=dict)
    recorded_at = models.DateTimeField(default=timezone.now)
    recorded_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["machine", "digest"], name="one_coverage_of_a_definition")]

    def __str__(self) -> str:
        return f"coverage of {self.machine} ({self.digest})"
