"""The Django app of definitions: their published versions, the admin, and the way to the engine."""

from __future__ import annotations

from django.apps import AppConfig


class MachinesConfig(AppConfig):
    name = "machines"
    verbose_name = "Signalbox"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.core.checks import register
        from django.db.models.signals import post_migrate

        from . import definition_checks  # noqa: F401  registers the system checks
        from .access.roles import after_migrate
        from .binding.checks import check_machines
        from .services import account_audit

        account_audit.connect()
        register(check_machines)
        post_migrate.connect(after_migrate, sender=self, dispatch_uid="machines.access.roles")
