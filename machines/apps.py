"""The Django app of definitions: their published versions, the admin, and the way to the engine."""

from types import ModuleType

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from machines.conf import extras


class MachinesConfig(AppConfig):
    name = "machines"
    verbose_name = "Signalbox"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        try:  # before models are imported, which would end in the traceback of a missing module
            extras.require("the app 'machines'", "django")
        except extras.MissingExtra as error:
            raise ImproperlyConfigured(str(error)) from None
        super().__init__(app_name, app_module)

    def import_models(self) -> None:
        from .conf.project import demand_apps

        demand_apps()  # before Django says in its own words that a model has no app
        super().import_models()

    def ready(self) -> None:
        from django.core.checks import Tags, register
        from django.db.models.signals import post_migrate

        from machines.alarms import routes  # noqa: F401  registers the system check
        from machines.audit import redaction
        from machines.catalog import definition_checks  # noqa: F401  registers the system checks
        from machines.catalog.queries import every_outline
        from machines.engine.errors import refusal_listeners
        from machines.integrations.attached import calls
        from machines.integrations.binding.checks import check_machines
        from machines.integrations.tasks import checks  # noqa: F401  registers the system check
        from machines.people import account_audit, mirrors, sign_in_times
        from machines.people.roles import after_migrate

        from .schedules import declarations
        from .signals import send_refusal

        account_audit.connect()
        sign_in_times.connect()
        if send_refusal not in refusal_listeners:
            refusal_listeners.append(send_refusal)
        mirrors.register(calls)
        redaction.register_outlines(every_outline)
        declarations.connect()
        register(Tags.models)(check_machines)
        post_migrate.connect(after_migrate, sender=self, dispatch_uid="machines.people.roles")
