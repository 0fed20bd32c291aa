"""Addresses of an instance: its page, events and repairs."""

from __future__ import annotations

from django.urls import path

from dashboard.shared.form_views import list_action_paths

from . import history, repairs, views

MACHINE = "machines/<name:machine>/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"

urlpatterns = [
    path(INSTANCE, views.show, name="instance"),
    path(f"{INSTANCE}history.csv", history.export_csv, name="history-csv"),
    path(f"{INSTANCE}history.json", history.export_json, name="history-json"),
    path(f"{INSTANCE}fire/", views.fire, name="fire"),
    *list_action_paths(INSTANCE, "", repairs.ACTION_VIEWS),
]
