"""Every address of the pages. ``tests/pages/table.py`` lists each with who may open it."""

from __future__ import annotations

from django.urls import include, path

from dashboard.shared import converters

converters.register()

urlpatterns = [
    path("", include("dashboard.pages.overview.urls")),
    path("", include("dashboard.pages.alarms.urls")),
    path("", include("dashboard.pages.studio.urls")),
    path("", include("dashboard.pages.machines.urls")),
    path("", include("dashboard.pages.versions.urls")),
    path("", include("dashboard.pages.instances.urls")),
    path("", include("dashboard.pages.queues.urls")),
    path("", include("dashboard.pages.jobs.urls")),
    path("", include("dashboard.pages.workers.urls")),
    path("", include("dashboard.pages.errors.urls")),
    path("", include("dashboard.pages.bulk.urls")),
    path("", include("dashboard.pages.runs.urls")),
    path("", include("dashboard.pages.schedules.urls")),
    path("", include("dashboard.pages.audit.urls")),
    path("", include("dashboard.pages.approvals.urls")),
    path("", include("dashboard.pages.webhooks.urls")),
    path("", include("dashboard.pages.account.urls")),
    path("", include("dashboard.pages.sm.urls")),
]
