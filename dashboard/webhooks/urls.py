"""Addresses of webhooks."""

from __future__ import annotations

from django.urls import path

from . import views

WEBHOOK = "webhooks/<int:id>/"

urlpatterns = [
    path("webhooks/", views.show_all, name="webhooks"),
    path("webhooks/new/", views.make, name="webhook-make"),
    path(WEBHOOK, views.show, name="webhook"),
    path(f"{WEBHOOK}change/", views.change, name="webhook-change"),
    path(f"{WEBHOOK}pause/", views.pause, name="webhook-pause"),
    path(f"{WEBHOOK}resume/", views.resume, name="webhook-resume"),
    path(f"{WEBHOOK}rotate/", views.rotate, name="webhook-rotate"),
    path(f"{WEBHOOK}test/", views.test, name="webhook-test"),
    path(f"{WEBHOOK}delete/", views.delete, name="webhook-delete"),
    path(f"{WEBHOOK}deliveries/<int:delivery>/again/", views.redeliver, name="webhook-redeliver"),
]
