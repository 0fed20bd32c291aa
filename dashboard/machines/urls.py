"""Addresses of a machine: its page, its diagram, its list of instances."""

from __future__ import annotations

from django.urls import path

from . import instance_list, views

MACHINE = "machines/<name:machine>/"

urlpatterns = [
    path(MACHINE, views.show, name="machine"),
    path(f"{MACHINE}charts.json", views.show_charts, name="machine-charts"),
    path(f"{MACHINE}diagram.svg", views.diagram, name="diagram"),
    path(f"{MACHINE}instances/", views.instances, name="instances"),
    path(f"{MACHINE}instances.csv", instance_list.export_csv, name="instances-csv"),
    path(f"{MACHINE}instances.json", instance_list.export_json, name="instances-json"),
    path(f"{MACHINE}archived/", views.show_archived, name="archived"),
    path(f"{MACHINE}completion.json", views.suggest, name="completion"),
    path(f"{MACHINE}counts/", views.counts, name="counts"),
    path(f"{MACHINE}rows/", views.rows, name="rows"),
    path(f"{MACHINE}create/", views.create, name="create"),
    path(f"{MACHINE}reconcile/", views.reconcile, name="reconcile"),
]
