"""Every address of the pages. ``tests/pages/table.py`` lists each with who may open it."""

from __future__ import annotations

from django.urls import include, path

from dashboard.shared import addresses

addresses.register()

ROOMS = (
    "overview", "alarms", "studio", "machines", "insight", "versions", "instances", "jobs.queues", "jobs", "workers",
    "failures", "bulks", "mapreduce", "schedules", "audit", "approvals", "webhooks", "account", "instances.sm",
)  # fmt: skip

urlpatterns = [path("", include(f"dashboard.{room}.urls")) for room in ROOMS]
