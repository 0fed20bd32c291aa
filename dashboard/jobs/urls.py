"""Addresses of a job."""

from __future__ import annotations

from django.urls import path

from . import views

JOB = "jobs/<name:machine>/<job:id>/"

urlpatterns = [
    path(JOB, views.show, name="job"),
    path(f"{JOB}redrive/", views.redrive, name="job-redrive"),
    path(f"{JOB}move/", views.move, name="job-move"),
    path(f"{JOB}withdraw/", views.withdraw, name="job-withdraw"),
]
