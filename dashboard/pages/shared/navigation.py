"""Links of the top bar and the foot. ``static/signalbox/js/shared/shortcuts.js`` has their keyboard shortcuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.apps import apps
from django.urls import reverse

from dashboard.shared.access import anywhere, scope_of
from machines.services import approvals


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """Holds a link.

    ``name`` of the address; ``right``: who sees the link; ``section``: of the pages it marks as current; ``waiting``:
    how many items wait for this person.
    """

    name: str
    label: str
    right: str
    section: str
    waiting: int = 0
    app: str = "dashboard"
    """The place is there where this app is installed."""
    in_foot: bool = False

    @property
    def url(self) -> str:
        return reverse(f"signalbox:{self.name}")


NAVIGATION_LINKS = (
    NavigationLink("overview", "Machines", "view", "machines"),
    NavigationLink("queues", "Queues", "view", "queues"),
    NavigationLink("workers", "Workers", "view", "workers"),
    NavigationLink("approvals", "Approvals", "view", "approvals"),
    NavigationLink("audit", "Audit", "audit", "audit"),
    NavigationLink("webhooks", "Webhooks", "operate", "webhooks"),
    NavigationLink("patterns", "Patterns", "view", "patterns", app="dashboard.examples", in_foot=True),
)


def list_navigation_links(user: Any) -> list[NavigationLink]:
    """List the links that the user may open, with one small query for pending approvals."""
    open_to = [place for place in NAVIGATION_LINKS if apps.is_installed(place.app) and anywhere(user, place.right)]
    return [replace(place, waiting=_count_waiting(user)) if place.name == "approvals" else place for place in open_to]


def _count_waiting(user: Any) -> int:
    return approvals.waiting(scope_of(user)).count()
