"""The tasks framework that is installed: ``django.tasks`` where Django has it, else the backport ``django_tasks``.

Both are the same but for the names of two exceptions. Importing this module without either raises MissingExtra.
"""

# ruff: noqa: F401  other modules take these from here

from machines.conf import extras

try:
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist
    from django.tasks.signals import log_task_finished, log_task_started, task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    PACKAGE = "django.tasks"
except ModuleNotFoundError as error:
    if error.name != "django.tasks":
        raise
    extras.require("the backend for Django's tasks", "tasks")
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import log_task_finished, log_task_started, task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    PACKAGE = "django_tasks"
