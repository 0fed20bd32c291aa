"""Addresses of the account pages: settings, tokens, sessions, links, saved views, login."""

from __future__ import annotations

from django.urls import path

from dashboard.site.environment import is_own_site

from . import link_views as links
from . import login, saved_views, tokens, views

urlpatterns = [
    path("views/", saved_views.save, name="view-save"),
    path("views/<int:id>/rename/", saved_views.rename, name="view-rename"),
    path("views/<int:id>/delete/", saved_views.delete, name="view-delete"),
    path("links/", links.make, name="link-make"),
    path("links/<str:handle>/renew/", links.renew, name="link-renew"),
    path("links/<str:handle>/revoke/", links.revoke, name="link-revoke"),
    path("v/<str:token>/", links.show, name="link"),
    path("account/", views.show, name="account"),
    path("account/tokens/", tokens.show, name="tokens"),
    path("account/tokens/<str:handle>/revoke/", tokens.revoke, name="token-revoke"),
    path("account/sessions/end/", tokens.end_all, name="sessions-end"),
    path("account/sessions/<str:handle>/end/", tokens.end, name="session-end"),
    path("account/theme/", views.choose_theme, name="account-theme"),
    path("account/zone/", views.choose_zone, name="account-zone"),
    # A project that mounts the pages has a login of its own, which may ask for more.
    *([path("accounts/login/", login.login, name="login")] if is_own_site() else []),
    path("accounts/logout/", login.logout, name="logout"),
]
