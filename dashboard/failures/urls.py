"""Addresses of the error inbox."""

from __future__ import annotations

from django.urls import path

from . import views

GROUP = "errors/<int:id>/"

urlpatterns = [
    path("errors/", views.show_all, name="errors"),
    path(GROUP, views.show, name="error-group"),
    path(f"{GROUP}assign/", views.assign, name="error-assign"),
    path(f"{GROUP}mute/", views.mute, name="error-mute"),
    path(f"{GROUP}resolve/", views.resolve, name="error-resolve"),
    path(f"{GROUP}reopen/", views.reopen, name="error-reopen"),
    path(f"{GROUP}redrive/", views.redrive, name="error-redrive"),
    path(f"{GROUP}skip/", views.skip, name="error-skip"),
    path(f"{GROUP}stop/", views.stop, name="error-stop"),
]
