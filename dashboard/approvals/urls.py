"""Addresses of approval requests."""

from __future__ import annotations

from django.urls import path

from . import views

APPROVAL = "approvals/<int:id>/"

urlpatterns = [
    path("approvals/", views.show_all, name="approvals"),
    path(APPROVAL, views.show, name="approval"),
    path(f"{APPROVAL}approve/", views.approve, name="approval-approve"),
    path(f"{APPROVAL}decline/", views.decline, name="approval-decline"),
    path(f"{APPROVAL}withdraw/", views.withdraw, name="approval-withdraw"),
]
