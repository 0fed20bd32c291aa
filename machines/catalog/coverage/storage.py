"""Keeps what a run of tests covered, for the definition with that digest: whichever version has it."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from machines.catalog.models.coverage import StoredCoverage

from .measurement import Coverage


def record(coverages: Iterable[Coverage], by: str) -> list[StoredCoverage]:
    """Store reports of a run; each replaces the one before for the same definition. ``by``: who or what ran it."""
    found = []
    for one in coverages:
        values = {"numbers": one.as_dict(), "recorded_at": timezone.now(), "recorded_by": by[:150]}
        row, _ = StoredCoverage.objects.update_or_create(machine=one.machine, digest=one.digest, defaults=values)
        found.append(row)
    return found


def find(machine: str, digest: str) -> StoredCoverage | None:
    """Find the report for a definition; None where there is none."""
    return StoredCoverage.objects.filter(machine=machine, digest=digest).first()
