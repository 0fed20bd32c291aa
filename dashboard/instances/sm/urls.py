"""Addresses of the keys of the SM commands."""

from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("sm/", views.find, name="sm"),
    path("sm/<instance:key>/", views.show, name="sm-key"),
    path("sm/<instance:key>/mutate/", views.mutate, name="sm-mutate"),
    path("sm/<instance:key>/force/", views.force, name="sm-force"),
]
