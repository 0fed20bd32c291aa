"""Addresses of the actions on runs of map-reduce; their pages are those of the instances."""

from __future__ import annotations

from django.urls import path

from . import views

RUNS = "machines/<name:machine>/runs/<instance:id>/"

urlpatterns = [
    path(f"{RUNS}retry/", views.retry, name="run-retry"),
    path(f"{RUNS}remove/", views.remove, name="run-remove"),
]
