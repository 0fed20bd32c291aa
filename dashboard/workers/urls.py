"""Addresses of workers."""

from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("workers/", views.show, name="workers"),
    path("workers/<instance:worker>/", views.direct, name="direct"),
]
