"""Builds addresses that need more than a name and its arguments."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import NoReverseMatch

from machines.engine import Job

from .page_addresses import find_instance_address, find_page_address


def page_of(name: str, *arguments: str) -> str:
    """Return the address of a page, or "" for names that can have none.

    Workers, definitions that compute names and old audit entries may contain any text.
    """
    try:
        if name == "instance":
            return find_instance_address(*arguments)
        return find_page_address(f"signalbox:{name}", *arguments)
    except NoReverseMatch:
        return ""


def job_url(job: Job) -> str:
    """Return the address of a job. ``of`` names the instance whose history has its trace once the job has ended."""
    address = find_page_address("signalbox:job", job.machine, job.id)
    return f"{address}?{urlencode({'of': job.instance})}" if job.instance else address
