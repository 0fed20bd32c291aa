"""Addresses of alarms. The key of an alarm has slashes, so forms send it in their body."""

from __future__ import annotations

from django.urls import path

from dashboard.shared.form_views import list_action_paths

from . import route_views, views

urlpatterns = [
    path("alarms/", views.show, name="alarms"),
    path("alarms/history/", views.show_history, name="alarm-history"),
    *list_action_paths("alarms/", "alarm-", views.ACTION_VIEWS),
    *route_views.PAGES.list_paths("alarms/routes/"),
]
