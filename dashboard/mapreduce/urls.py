"""Addresses of the actions on runs of map-reduce; their pages are those of the instances."""

from __future__ import annotations

from dashboard.shared.form_views import list_action_paths

from . import views

RUNS = "machines/<name:machine>/runs/<instance:id>/"

urlpatterns = [
    *list_action_paths(RUNS, "run-", views.ACTION_VIEWS),
]
