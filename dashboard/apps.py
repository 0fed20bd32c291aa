"""The Django app of the pages, the API and the live view."""

from types import ModuleType

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Dashboard"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        _demand_own_machines()
        from machines.conf import extras

        try:
            extras.require("the app 'dashboard'", "django", "dashboard")
        except extras.MissingExtra as error:
            raise ImproperlyConfigured(str(error)) from None
        super().__init__(app_name, app_module)

    def import_models(self) -> None:
        from machines.conf.project import demand_apps

        demand_apps()  # before Django says in its own words that a model has no app
        super().import_models()

    def ready(self) -> None:
        from dashboard.serving.checks import project_checks, system_checks  # noqa: F401  registers the system checks
        from dashboard.site import home

        home.log_notices()


def _demand_own_machines() -> None:
    """Raise ImproperlyConfigured where the package machines is that of another project."""
    import machines

    try:
        from machines.conf import extras  # noqa: F401  ours has it
    except ImportError:
        place = next(iter(getattr(machines, "__path__", ())), machines.__file__)
        raise ImproperlyConfigured(
            f"the package machines at {place} is not Signalbox's, and a process has room for one of that name. Run "
            "Signalbox beside your project, as a process of its own (`signalbox serve`): "
            "docs/add-to-your-project.md#beside. (signalbox.E023)"
        ) from None
