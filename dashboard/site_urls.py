"""Addresses of the product's own site: the pages and the API at the root, beside Django's admin."""

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

if settings.SIGN_IN_APPS:
    from dashboard.account.sign_in.views import lead_to_login as _login

    _sign_in = [path("accounts/", include("dashboard.account.sign_in.urls"))]
else:
    _login, _sign_in = throttle(admin.site.login), []

urlpatterns = [
    path("admin/login/", _login, name="admin-login"),
    path("admin/", admin.site.urls),
    path("favicon.ico", favicon, name="favicon"),
    *_sign_in,
    path("", include("dashboard.urls")),
]

handler400 = "dashboard.shared.errors.pages.bad_request"
handler403 = "dashboard.shared.errors.pages.forbidden"
handler404 = "dashboard.shared.errors.pages.not_found"
handler500 = "dashboard.shared.errors.redis_outage.server_error"
