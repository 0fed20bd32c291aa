"""Addresses of the Studio. ``machines/new/`` goes before the page of a machine that has that name."""

from __future__ import annotations

from django.urls import path

from . import checks, simulator, views

EDIT = "machines/<name:machine>/edit/"
TRY = "machines/<name:machine>/try/"

urlpatterns = [
    path("machines/new/", views.new, name="studio-new"),
    path("machines/new/check/", checks.check_new, name="studio-check-new"),
    path("machines/new/verify/", checks.verify_new, name="studio-verify-new"),
    path("machines/new/play/", simulator.play_new, name="studio-play-new"),
    path(EDIT, views.edit, name="studio"),
    path(f"{EDIT}submit/", views.submit, name="studio-submit"),
    path(f"{EDIT}check/", checks.check, name="studio-check"),
    path(f"{EDIT}verify/", checks.verify, name="studio-verify"),
    path(f"{EDIT}play/", simulator.play, name="studio-play"),
    path(f"{EDIT}save/", views.save, name="studio-save"),
    path(f"{EDIT}presence/", views.note_presence, name="studio-presence"),
    path(TRY, simulator.show, name="try"),
    path(f"{TRY}step/", simulator.step, name="try-step"),
    path(f"{TRY}scenario.yaml", simulator.scenario, name="try-scenario"),
]
