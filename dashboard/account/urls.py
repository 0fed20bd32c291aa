"""Addresses of the account pages: settings, tokens, sessions, saved views, login."""

from __future__ import annotations

from django.urls import path

from dashboard.site.environment import is_own_site

from . import login, views

urlpatterns = [
    path("views/", views.save_view, name="view-save"),
    path("views/<int:id>/rename/", views.rename_view, name="view-rename"),
    path("views/<int:id>/delete/", views.delete_view, name="view-delete"),
    path("account/", views.show, name="account"),
    path("account/tokens/", views.show_tokens, name="tokens"),
    path("account/tokens/<str:handle>/revoke/", views.revoke_token, name="token-revoke"),
    path("account/sessions/end/", views.end_sessions, name="sessions-end"),
    path("account/sessions/<str:handle>/end/", views.end_session, name="session-end"),
    path("account/theme/", views.choose_theme, name="account-theme"),
    path("account/tour/", views.end_tour, name="account-tour"),
    path("account/zone/", views.choose_zone, name="account-zone"),
    # A project that mounts the pages has a login of its own, which may ask for more.
    *([path("accounts/login/", login.login, name="login")] if is_own_site() else []),
    path("accounts/logout/", login.logout, name="logout"),
]
