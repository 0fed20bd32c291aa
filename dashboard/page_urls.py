"""Every address of the pages. ``tests/pages/table.py`` lists each with who may open it."""

from __future__ import annotations

from django.urls import include, path

from dashboard.shared import addresses

addresses.register()

urlpatterns = [
    path("", include("dashboard.overview.urls")),
    path("", include("dashboard.alarms.urls")),
    path("", include("dashboard.studio.urls")),
    path("", include("dashboard.machines.urls")),
    path("", include("dashboard.versions.urls")),
    path("", include("dashboard.instances.urls")),
    path("", include("dashboard.jobs.queues.urls")),
    path("", include("dashboard.jobs.urls")),
    path("", include("dashboard.workers.urls")),
    path("", include("dashboard.failures.urls")),
    path("", include("dashboard.bulks.urls")),
    path("", include("dashboard.mapreduce.urls")),
    path("", include("dashboard.schedules.urls")),
    path("", include("dashboard.audit.urls")),
    path("", include("dashboard.approvals.urls")),
    path("", include("dashboard.webhooks.urls")),
    path("", include("dashboard.account.urls")),
    path("", include("dashboard.instances.sm.urls")),
]
