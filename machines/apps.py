"""The Django app of definitions: their published versions, the admin, and the way to the engine."""

from __future__ import annotations

from django.apps import AppConfig


class MachinesConfig(AppConfig):
    name = "machines"
    verbose_name = "Signalbox"
    default_auto_field = "django.db.models.BigAutoField"
