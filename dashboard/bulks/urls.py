"""Addresses of bulk actions."""

from __future__ import annotations

from django.urls import path

from dashboard.shared.form_views import list_action_paths

from . import views

MACHINE = "machines/<name:machine>/"
BULK = "bulk/<instance:id>/"

urlpatterns = [
    path("bulk/", views.show_list, name="bulk-list"),
    path(f"{MACHINE}bulk/", views.new, name="bulk-new"),
    path(BULK, views.show, name="bulk"),
    *list_action_paths(BULK, "bulk-", views.ACTION_VIEWS),
    path(f"{BULK}results.csv", views.results, name="bulk-results"),
]
