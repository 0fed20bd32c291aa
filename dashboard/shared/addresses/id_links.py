"""Links an id to the page of what it names: one table for every page, and only where the person may open the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from ..permissions import anywhere, scope_of
from .addresses import page_of
from .page_addresses import find_page_address


def _link_in_machine(name: str) -> Callable[..., str]:
    """Return a function that makes the address of a page of a machine, its name first."""

    def address(user: Any, machine: str, *names: str) -> str:
        return page_of(name, machine, *names) if machine in scope_of(user) else ""

    return address


def _link_without_machine(name: str) -> Callable[..., str]:
    """Return a function that makes the address of a page that has no machine in it, of something of a machine."""

    def address(user: Any, machine: str, id: str) -> str:
        return page_of(name, id) if machine in scope_of(user) else ""

    return address


def _link_worker(user: Any, id: str) -> str:
    return f"{find_page_address('signalbox:workers')}#{worker_anchor(id)}" if anywhere(user, "view") else ""


def _request(user: Any, id: str) -> str:
    return f"{find_page_address('signalbox:audit')}?{urlencode({'request': id})}" if anywhere(user, "audit") else ""


def _link_webhook(user: Any, id: str) -> str:
    return page_of("webhook", id) if scope_of(user, "operate").all else ""


ADDRESSES: dict[str, Callable[..., str]] = {
    "machine": _link_in_machine("machine"),
    "instance": _link_in_machine("instance"),
    "job": _link_in_machine("job"),
    "queue": _link_in_machine("queue"),
    "bulk": _link_without_machine("bulk"),
    "approval": _link_without_machine("approval"),
    "worker": _link_worker,
    "request": _request,
    "webhook": _link_webhook,
}
"""Kind of an id -> a function of the person and the names that makes its address, "" for none."""


def find_address(user: Any, kind: str, *names: str) -> str:
    """Return the address of what an id names, or "" where it has no page or the person may not open it.

    ``names``: of an instance, job or queue its machine and its id; of a bulk action or an approval the machine that it
    is about and its id; of the others the id.
    """
    return ADDRESSES[kind](user, *(str(name) for name in names)) if all(names) else ""


def worker_anchor(id: str) -> str:
    """Return the fragment of a worker's panel on the page of workers."""
    return f"worker-{quote(id, safe='')}"
