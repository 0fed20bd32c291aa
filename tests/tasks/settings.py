"""Settings of a process that enqueues or runs the tasks of these tests."""

from dashboard.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "django_tasks", "tests.tasks.app"]  # noqa: F405
SIGNALBOX = SIGNALBOX | {"TASK_RESULTS": 600}  # noqa: F405
TASKS = {
    "default": {
        "BACKEND": "machines.tasks.SignalboxBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"attempts": 2, "backoff": 10, "modules": ["tests.tasks.further"]},
    },
    "once": {
        "BACKEND": "machines.tasks.SignalboxBackend",
        "OPTIONS": {"attempts": 1},
    },
    "elsewhere": {"BACKEND": "django_tasks.backends.dummy.DummyBackend"},
}
