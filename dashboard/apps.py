from django.apps import AppConfig

from .installation import private_files


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        from .checks import system_checks  # noqa: F401  registers the system checks

        private_files.log_notices()
