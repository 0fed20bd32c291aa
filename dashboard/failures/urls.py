"""Addresses of the error inbox."""

from __future__ import annotations

from django.urls import path

from . import retry_views, views

GROUP = "errors/<int:id>/"

urlpatterns = [
    path("errors/", views.show_all, name="errors"),
    path("errors/retry/", retry_views.show, name="error-retry"),
    path("errors/retry/<int:number>/stop/", retry_views.stop, name="error-retry-stop"),
    path(GROUP, views.show, name="error-group"),
    path(f"{GROUP}assign/", views.assign, name="error-assign"),
    path(f"{GROUP}mute/", views.mute, name="error-mute"),
    path(f"{GROUP}resolve/", views.resolve, name="error-resolve"),
    path(f"{GROUP}reopen/", views.reopen, name="error-reopen"),
    path(f"{GROUP}redrive/", views.redrive, name="error-redrive"),
    path(f"{GROUP}skip/", views.skip, name="error-skip"),
    path(f"{GROUP}stop/", views.stop, name="error-stop"),
]
