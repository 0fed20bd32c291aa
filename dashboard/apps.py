from types import ModuleType

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from machines import extras

from .installation import private_files


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Dashboard"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        try:
            extras.require("the app 'dashboard'", "django", "dashboard")
        except extras.MissingExtra as error:
            raise ImproperlyConfigured(str(error)) from None
        super().__init__(app_name, app_module)

    def ready(self) -> None:
        from .checks import system_checks  # noqa: F401  registers the system checks

        private_files.log_notices()
