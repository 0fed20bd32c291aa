"""Addresses of the error inbox."""

from __future__ import annotations

from django.urls import path

from dashboard.jobs.queues.urls import QUEUE
from dashboard.shared.form_views import list_action_paths

from . import retry_views, search_views, views

GROUP = "errors/<int:id>/"

urlpatterns = [
    path("errors/", views.show_all, name="errors"),
    path("errors/retry/", retry_views.show, name="error-retry"),
    path("errors/retry/<int:number>/stop/", retry_views.stop, name="error-retry-stop"),
    path(f"{QUEUE}search/", search_views.show, name="queue-search"),
    path(GROUP, views.show, name="error-group"),
    *list_action_paths(GROUP, "error-", views.ACTION_VIEWS),
]
