"""The pages of routes of alarms, whose addresses are never shown again. ``machines.alarms.routes`` does the work."""

from __future__ import annotations

from typing import Any

from dashboard.webhooks.receivers import ReceiverPages
from machines.alarms import routes
from machines.models import AlarmRoute
from machines.people.actor import Actor
from machines.webhooks import apprise_post

from .forms import RouteForm


def _describe_list(actor: Actor) -> dict[str, Any]:
    return {"routes": [(route, routes.show_address(route.receiver.url)) for route in routes.list_routes(actor)]}


def _describe(route: AlarmRoute) -> dict[str, Any]:
    url = route.receiver.url
    return {"address": routes.show_address(url), "posts": not apprise_post.is_apprise(url)}


PAGES = ReceiverPages(
    "route", "alarm-route", "alarms", routes, RouteForm, _describe_list, _describe,
    said={
        "pause": "Paused: no alarms are sent",
        "resume": "Resumed",
        "test": "Test message queued: the log below has its result",
    },
)  # fmt: skip
