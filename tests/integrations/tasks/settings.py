"""Settings of a process that enqueues or runs the tasks of these tests."""

from importlib.util import find_spec

from dashboard.settings import *  # noqa: F403

FRAMEWORK = [] if find_spec("django.tasks") else ["django_tasks"]
INSTALLED_APPS = [*INSTALLED_APPS, *FRAMEWORK, "tests.integrations.tasks.app"]  # noqa: F405
SIGNALBOX = SIGNALBOX | {"TASK_RESULTS": 600}  # noqa: F405
TASKS = {
    "default": {
        "BACKEND": "machines.tasks.SignalboxBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"attempts": 2, "backoff": 10, "modules": ["tests.integrations.tasks.further"]},
    },
    "once": {
        "BACKEND": "machines.tasks.SignalboxBackend",
        "OPTIONS": {"attempts": 1},
    },
    "committed": {
        "BACKEND": "machines.tasks.SignalboxBackend",
        "OPTIONS": {"on_commit": True},
    },
    "elsewhere": {"BACKEND": f"{FRAMEWORK[0] if FRAMEWORK else 'django.tasks'}.backends.dummy.DummyBackend"},
}
