"""Addresses of the audit log."""

from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("audit/", views.show, name="audit"),
    path("audit/entries.csv", views.export_csv, name="audit-export"),
]
