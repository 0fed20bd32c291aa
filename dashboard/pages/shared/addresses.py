"""Addresses that take more than a name and its arguments."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse

from machines.engine import Job


def page_of(name: str, *arguments: str) -> str:
    """The address of a page; "" where a name that none can have has none: workers, definitions that compute names and
    old entries of the audit may say anything."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


def job_url(job: Job) -> str:
    """``of`` lets the page of a job that has ended say whose history holds its trace."""
    address = reverse("job", args=[job.machine, job.id])
    return f"{address}?{urlencode({'of': job.instance})}" if job.instance else address
