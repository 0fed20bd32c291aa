"""Addresses of sign-in below ``accounts/``: the pages of django-allauth that Signalbox offers, and no others.

Nobody signs up, and mail addresses are changed in the admin. Logins are throttled as those without the library are.
"""

from __future__ import annotations

from allauth import app_settings
from allauth.account import urls as account_urls
from allauth.account.views import login as library_login
from allauth.urls import build_provider_urlpatterns
from django.conf import settings
from django.urls import include, path

from dashboard.account.login import logout, throttle
from dashboard.serving.middleware.own_pages import map_views

from . import views

RESET = (
    "account_reset_password", "account_reset_password_done", "account_reset_password_from_key",
    "account_reset_password_from_key_done",
)  # fmt: skip
PAGES = ("account_inactive", "account_reauthenticate", "account_change_password")
_offered = {*PAGES, *(RESET if settings.SIGN_IN_MAILS else ())}

urlpatterns = [
    path("login/", throttle(library_login, records=False), name="account_login"),
    path("logout/", logout, name="account_logout"),
    path("confirm/", views.confirm, name="account_confirm"),
    path("password/set/", views.explain_no_password, name="account_set_password"),
    *(pattern for pattern in account_urls.urlpatterns if pattern.name in _offered),
    path("sessions/", include("allauth.usersessions.urls")),
    *([path("2fa/", include("allauth.mfa.urls"))] if app_settings.MFA_ENABLED else []),
]
if app_settings.SOCIALACCOUNT_ENABLED:
    urlpatterns += [
        path("3rdparty/", include("allauth.socialaccount.urls")),
        *map_views(build_provider_urlpatterns(), views.guard_provider),
    ]
