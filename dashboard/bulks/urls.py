"""Addresses of bulk actions."""

from __future__ import annotations

from django.urls import path

from . import views

MACHINE = "machines/<name:machine>/"
BULK = "bulk/<instance:id>/"

urlpatterns = [
    path("bulk/", views.show_list, name="bulk-list"),
    path(f"{MACHINE}bulk/", views.new, name="bulk-new"),
    path(BULK, views.show, name="bulk"),
    path(f"{BULK}run/", views.run, name="bulk-run"),
    path(f"{BULK}pause/", views.pause, name="bulk-pause"),
    path(f"{BULK}resume/", views.resume, name="bulk-resume"),
    path(f"{BULK}retry/", views.retry, name="bulk-retry"),
    path(f"{BULK}stop/", views.stop, name="bulk-stop"),
    path(f"{BULK}remove/", views.remove, name="bulk-remove"),
    path(f"{BULK}rate/", views.rate, name="bulk-rate"),
    path(f"{BULK}again/", views.again, name="bulk-again"),
    path(f"{BULK}results.csv", views.results, name="bulk-results"),
]
