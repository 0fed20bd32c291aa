"""Removes failures that are older than they are kept."""

from __future__ import annotations

import time

from machines.conf import conf
from machines.conf.database_retry import delete_some
from machines.conf.retention_policy import parse_policy

from .models import FailedJob, FailureGroup, FailureHour

KEEP = 90 * 86_400_000  # ms, where the setting RETAIN says nothing
HOURS = 24 * 30  # hours of trend that are kept at most
SOME = 500  # rows of one statement


def prune(now: int | None = None) -> None:
    """Remove what is beyond the bound ``failures`` of ``SIGNALBOX_RETAIN``. Groups with open jobs stay. ``now``: ms."""
    now = int(time.time() * 1000) if now is None else now
    bound = parse_policy(conf.RETAIN).table("failures")
    before = now - (KEEP if bound.age is None else bound.age)
    hours = max(before, now - HOURS * 3_600_000) // 3_600_000
    delete_some(FailureHour.objects.filter(hour__lt=hours).order_by("pk"), SOME)
    delete_some(FailedJob.objects.filter(open=False, died__lt=before).order_by("pk"), SOME)
    old = FailureGroup.objects.filter(last_seen__lt=before).exclude(jobs__open=True).order_by("last_seen")
    if bound.most is not None and (excess := FailureGroup.objects.count() - bound.most) > 0:
        closed = FailureGroup.objects.exclude(jobs__open=True).order_by("last_seen")
        delete_some(closed, min(excess, SOME))
    delete_some(old, SOME)
