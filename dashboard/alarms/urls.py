"""Addresses of alarms. The key of an alarm has slashes, so forms send it in their body."""

from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("alarms/", views.show, name="alarms"),
    path("alarms/history/", views.show_history, name="alarm-history"),
    path("alarms/acknowledge/", views.acknowledge, name="alarm-acknowledge"),
    path("alarms/assign/", views.assign, name="alarm-assign"),
    path("alarms/snooze/", views.snooze, name="alarm-snooze"),
    path("alarms/wake/", views.wake, name="alarm-wake"),
]
