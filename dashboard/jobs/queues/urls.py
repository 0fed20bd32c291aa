"""Addresses of queues."""

from __future__ import annotations

from django.urls import path

from . import views

QUEUE = "queues/<name:machine>/<name:queue>/"

urlpatterns = [
    path("queues/", views.show_all, name="queues"),
    path(QUEUE, views.show, name="queue"),
    path(f"{QUEUE}charts.json", views.show_charts, name="queue-charts"),
    path(f"{QUEUE}groups/", views.show_groups, name="queue-groups"),
    path(f"{QUEUE}pause/", views.pause, name="queue-pause"),
    path(f"{QUEUE}resume/", views.resume, name="queue-resume"),
    path(f"{QUEUE}limit/", views.limit, name="queue-limit"),
    path(f"{QUEUE}purge/", views.purge, name="queue-purge"),
    path(f"{QUEUE}move/", views.move, name="queue-move"),
]
