"""Addresses of schedules."""

from __future__ import annotations

from django.urls import path

from . import views

SCHEDULE = "schedules/<str:name>/"

urlpatterns = [
    path("schedules/", views.show_all, name="schedules"),
    path("machines/<name:machine>/schedules/new/", views.make, name="schedule-new"),
    path(SCHEDULE, views.show, name="schedule"),
    path(f"{SCHEDULE}change/", views.change, name="schedule-change"),
    path(f"{SCHEDULE}pause/", views.pause, name="schedule-pause"),
    path(f"{SCHEDULE}resume/", views.resume, name="schedule-resume"),
    path(f"{SCHEDULE}take-over/", views.take_over, name="schedule-take-over"),
    path(f"{SCHEDULE}run/", views.run, name="schedule-run"),
    path(f"{SCHEDULE}backfill/", views.backfill, name="schedule-backfill"),
    path(f"{SCHEDULE}remove/", views.remove, name="schedule-remove"),
]
