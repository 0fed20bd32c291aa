"""Addresses of the actions on runs of map-reduce; their pages are those of the instances."""

from __future__ import annotations

from django.urls import path

from machines.mapreduce.builtin_machines import RUN

from . import views

urlpatterns = [
    path("runs/<instance:id>/retry/", views.retry, {"machine": RUN}, name="run-retry"),
    path("runs/<instance:id>/remove/", views.remove, {"machine": RUN}, name="run-remove"),
]
