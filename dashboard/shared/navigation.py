"""Places of the top bar, its menu and the foot. A new place is one line of ``NAVIGATION_LINKS``.

``static/signalbox/css/shared/bar.css`` says how many places fit at each width; the menu *More* has the others.
``static/signalbox/js/shared/shortcuts.js`` reads their keyboard shortcuts from the page.
"""

from dataclasses import dataclass, replace
from typing import Any

from django.apps import apps
from django.urls import NoReverseMatch

from machines.approvals import queries as approval_queries
from machines.people.permissions import anywhere, scope_of

from .addresses import find_page_address


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """Holds a link.

    ``name`` of the address; ``right``: who sees the link ("": staff); ``section``: of the pages it marks as current;
    ``key``: the letter that opens it after ``g``; ``waiting``: how many items wait for this person.
    """

    name: str
    label: str
    right: str
    section: str
    key: str = ""
    waiting: int = 0
    app: str = "dashboard"
    """The place is there where this app is installed."""
    address: str = ""
    """The name of the address where it is none of ours."""
    in_foot: bool = False

    @property
    def url(self) -> str:
        return find_page_address(self.address or f"signalbox:{self.name}")

    def is_open_to(self, user: Any) -> bool:
        """Say whether the place is installed here and the user may open it."""
        if not apps.is_installed(self.app):
            return False
        return anywhere(user, self.right) if self.right else bool(getattr(user, "is_staff", False)) and self._exists()

    def _exists(self) -> bool:
        """Say whether the project has the address."""
        try:
            return bool(self.url)
        except NoReverseMatch:
            return False


NAVIGATION_LINKS = (  # those that come first stay in the bar at more widths
    NavigationLink("overview", "Machines", "view", "machines", "o"),
    NavigationLink("alarms", "Alarms", "view", "alarms", "l"),
    NavigationLink("queues", "Queues", "view", "queues", "q"),
    NavigationLink("errors", "Errors", "view", "errors", "e"),
    NavigationLink("workers", "Workers", "view", "workers", "w"),
    NavigationLink("approvals", "Approvals", "view", "approvals", "a"),
    NavigationLink("audit", "Audit", "audit", "audit", "u"),
    NavigationLink("bulk-list", "Bulk actions", "view", "bulk", "b"),
    NavigationLink("schedules", "Schedules", "view", "schedules", "s"),
    NavigationLink("webhooks", "Webhooks", "operate", "webhooks", "h"),
    NavigationLink("admin", "Admin", "", "admin", app="django.contrib.admin", address="admin:index"),
    NavigationLink("patterns", "Patterns", "view", "patterns", "p", app="dashboard.demo.examples", in_foot=True),
    NavigationLink("sm", "State machines by key", "view", "sm", "k", in_foot=True),
)


def list_navigation_links(user: Any) -> list[NavigationLink]:
    """List the links that the user may open, with one small query for pending approvals."""
    open_to = [place for place in NAVIGATION_LINKS if place.is_open_to(user)]
    return [
        replace(place, waiting=approval_queries.count_open(scope_of(user))) if place.name == "approvals" else place
        for place in open_to
    ]
