"""Addresses of alarms. The key of an alarm has slashes, so forms send it in their body."""

from __future__ import annotations

from django.urls import path

from . import route_views, views

ROUTE = "alarms/routes/<int:id>/"

urlpatterns = [
    path("alarms/", views.show, name="alarms"),
    path("alarms/history/", views.show_history, name="alarm-history"),
    path("alarms/acknowledge/", views.acknowledge, name="alarm-acknowledge"),
    path("alarms/assign/", views.assign, name="alarm-assign"),
    path("alarms/snooze/", views.snooze, name="alarm-snooze"),
    path("alarms/wake/", views.wake, name="alarm-wake"),
    path("alarms/routes/", route_views.show_all, name="alarm-routes"),
    path("alarms/routes/new/", route_views.make, name="alarm-route-make"),
    path(ROUTE, route_views.show, name="alarm-route"),
    *(
        path(f"{ROUTE}{name}/", getattr(route_views, name), name=f"alarm-route-{name}")
        for name in ("change", "pause", "resume", "rotate", "test", "delete")
    ),
    path(f"{ROUTE}deliveries/<int:delivery>/again/", route_views.redeliver, name="alarm-route-redeliver"),
]
