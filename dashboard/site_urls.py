"""Addresses of the product's own site: the pages and the API at the root, beside Django's admin."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from dashboard.account.login import throttle

# What browsers ask for where a page names no icon, as the admin's do not.
favicon = RedirectView.as_view(
    url=f"{settings.STATIC_URL}signalbox/img/signalbox.svg", http_method_names=["get", "head"]
)

admin.site.site_header = admin.site.site_title = "Signalbox"  # of our own site; a project keeps its own

urlpatterns = [
    path("admin/login/", throttle(admin.site.login), name="admin-login"),  # the admin's own, throttled
    path("admin/", admin.site.urls),
    path("favicon.ico", favicon, name="favicon"),
    path("", include("dashboard.urls")),
]

handler400 = "dashboard.shared.errors.pages.bad_request"
handler403 = "dashboard.shared.errors.pages.forbidden"
handler404 = "dashboard.shared.errors.pages.not_found"
handler500 = "dashboard.shared.errors.redis_outage.server_error"
