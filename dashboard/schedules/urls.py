"""Addresses of schedules."""

from __future__ import annotations

from django.urls import path

from dashboard.shared.form_views import list_action_paths

from . import views

SCHEDULE = "schedules/<str:name>/"

urlpatterns = [
    path("schedules/", views.show_all, name="schedules"),
    path("machines/<name:machine>/schedules/new/", views.make, name="schedule-new"),
    path(SCHEDULE, views.show, name="schedule"),
    *list_action_paths(SCHEDULE, "schedule-", views.ACTION_VIEWS),
]
