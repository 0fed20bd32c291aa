"""Addresses that take more than a name and its arguments."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from machines.engine import Job


def job_url(job: Job) -> str:
    """``of`` lets the page of a job that has ended say whose history holds its trace."""
    address = reverse("job", args=[job.machine, job.id])
    return f"{address}?{urlencode({'of': job.instance})}" if job.instance else address
