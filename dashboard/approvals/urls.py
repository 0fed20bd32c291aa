"""Addresses of approval requests."""

from __future__ import annotations

from django.urls import path

from dashboard.shared.form_views import list_action_paths

from . import views

APPROVAL = "approvals/<int:id>/"

urlpatterns = [
    path("approvals/", views.show_all, name="approvals"),
    path(APPROVAL, views.show, name="approval"),
    *list_action_paths(APPROVAL, "approval-", views.ACTION_VIEWS),
]
