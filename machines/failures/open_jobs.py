"""Finds which of the counted jobs are still dead and unhandled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from .dead_jobs import DeadJobs, JobRef
from .models import FailedJob

SOME = 1_000  # jobs of one pass of the follower
AT_ONCE = 1_000  # jobs of one round trip
MAX_OPEN = 10_000  # jobs of a group that one action takes


def refresh_some(jobs: DeadJobs, *, now: int) -> int:
    """Look at the open jobs that were not looked at for longest; return how many have gone."""
    rows = list(FailedJob.objects.filter(open=True).order_by("checked", "pk")[:SOME])
    return len(rows) - len(refresh(jobs, rows, now=now))


def refresh(jobs: DeadJobs, rows: Sequence[FailedJob], *, now: int) -> list[FailedJob]:
    """Look at these jobs and note which are open; return those."""
    still: list[FailedJob] = []
    for first in range(0, len(rows), AT_ONCE):
        part = rows[first : first + AT_ONCE]
        found = {row.pk for row in list_open(jobs, part)}
        still += [row for row in part if row.pk in found]
        FailedJob.objects.filter(pk__in=[row.pk for row in part if row.pk not in found]).update(open=False)
        FailedJob.objects.filter(pk__in=found).update(checked=now)
    return still


def list_open(jobs: DeadJobs, rows: Iterable[FailedJob]) -> list[FailedJob]:
    """Return those of the jobs that are open as of now; write nothing."""
    rows, still = list(rows), list[FailedJob]()
    for first in range(0, len(rows), AT_ONCE):
        part = rows[first : first + AT_ONCE]
        found = jobs.find_open([_make_ref(row) for row in part])
        still += [row for row in part if _make_ref(row) in found]
    return still


def list_open_of(jobs: DeadJobs, rows: QuerySet[FailedJob]) -> list[FailedJob]:
    """Return the open jobs among the rows as of now, the oldest first; looks at ``MAX_OPEN`` at most."""
    return list_open(jobs, rows.filter(open=True).order_by("died", "pk")[:MAX_OPEN])


def _make_ref(row: FailedJob) -> JobRef:
    return JobRef(row.machine, row.job, row.died)
