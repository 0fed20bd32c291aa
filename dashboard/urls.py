"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from dashboard.health import healthz

urlpatterns = [
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("api/v1/", include("dashboard.api.urls")),
    path("", include("dashboard.pages.urls")),
]

handler400 = "dashboard.pages.errors.bad_request"
handler403 = "dashboard.pages.errors.forbidden"
handler404 = "dashboard.pages.errors.not_found"
handler500 = "dashboard.outage.server_error"
