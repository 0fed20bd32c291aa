"""Addresses of what the histories of a machine's instances say, and of its facts as files."""

from __future__ import annotations

from django.urls import path

from . import views

INSIGHT = "machines/<name:machine>/insight"

urlpatterns = [
    path(f"{INSIGHT}/", views.show, name="insight"),
    path(f"{INSIGHT}.xes", views.export_xes, name="insight-xes"),
    path(f"{INSIGHT}.parquet", views.export_parquet, name="insight-parquet"),
]
