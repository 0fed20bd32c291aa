"""Addresses of an instance: its page, events and repairs."""

from __future__ import annotations

from django.urls import path

from . import history, repairs, views

MACHINE = "machines/<name:machine>/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"

urlpatterns = [
    path(INSTANCE, views.show, name="instance"),
    path(f"{INSTANCE}history.csv", history.export_csv, name="history-csv"),
    path(f"{INSTANCE}history.json", history.export_json, name="history-json"),
    path(f"{INSTANCE}fire/", views.fire, name="fire"),
    path(f"{INSTANCE}force/", repairs.force, name="force"),
    path(f"{INSTANCE}edit/", repairs.edit, name="edit"),
    path(f"{INSTANCE}reset/", repairs.reset, name="reset"),
    path(f"{INSTANCE}retry/", repairs.retry, name="retry"),
    path(f"{INSTANCE}skip/", repairs.skip, name="skip"),
    path(f"{INSTANCE}cancel/", repairs.cancel, name="cancel"),
    path(f"{INSTANCE}suspend/", repairs.suspend, name="suspend"),
    path(f"{INSTANCE}resume/", repairs.resume, name="resume"),
    path(f"{INSTANCE}delete/", repairs.delete, name="delete"),
]
