"""Every address of the site."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from dashboard.metrics.views import metrics
from dashboard.pages.account.login import admin_login
from dashboard.serving.health import healthz, readyz

# What browsers ask for where a page names no icon, as the admin's do not.
favicon = RedirectView.as_view(url=f"{settings.STATIC_URL}img/signalbox.svg", http_method_names=["get", "head"])

urlpatterns = [
    path("admin/login/", admin_login, name="admin-login"),  # the admin's own, throttled
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("favicon.ico", favicon, name="favicon"),
    path("api/v1/", include("dashboard.api.urls")),
    *([path("patterns/", include("dashboard.examples.urls"))] if apps.is_installed("dashboard.examples") else []),
    path("", include("dashboard.pages.urls")),
]

handler400 = "dashboard.shared.errors.pages.bad_request"
handler403 = "dashboard.shared.errors.pages.forbidden"
handler404 = "dashboard.shared.errors.pages.not_found"
handler500 = "dashboard.shared.errors.redis_outage.server_error"
