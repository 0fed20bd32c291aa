"""System checks of ``TASKS``. What one entry says is checked by its backend.

E047  the package of the framework is missing, or an entry of the backend does not fit
W048  the app of the backport is not installed, so that the framework's own checks and log are not
"""

from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from machines.conf import extras
from machines.conf.project import TAG, WORKER_TAG

BACKEND = "machines.tasks.SignalboxBackend"


def has_framework() -> bool:
    """Tell whether a package of the framework is installed."""
    return find_spec("django.tasks") is not None or not extras.list_missing("tasks")


def is_configured() -> bool:
    """Tell whether the project has tasks that may be for workers here."""
    return bool(getattr(settings, "TASKS", None)) and has_framework()


@register(TAG, WORKER_TAG)
def check_tasks(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    entries = getattr(settings, "TASKS", None)
    named = (
        [one.get("BACKEND") for one in entries.values() if isinstance(one, dict)] if isinstance(entries, dict) else []
    )
    if BACKEND not in named:
        return []
    if not has_framework():
        hint = "pip install 'signalbox[tasks]'"
        text = "TASKS names the backend of Signalbox, and neither django.tasks nor django-tasks is installed"
        return [Error(text, hint=hint, id="signalbox.E047")]
    from .backend import list_backends
    from .framework import PACKAGE

    if PACKAGE == "django.tasks" or apps.is_installed(PACKAGE):
        return []  # the framework calls the checks of its backends
    hint = 'Add "django_tasks" to INSTALLED_APPS.'
    missing = Warning(
        "django_tasks is no installed app: nothing checks TASKS, or logs tasks", hint=hint, id="signalbox.W048"
    )
    return [missing, *(found for backend in list_backends() for found in backend.check())]
