"""The tasks framework of these tests: Django's own where there is one, else its backport."""

from __future__ import annotations

from importlib import import_module

from machines.integrations.tasks.framework import (
    PACKAGE,
    InvalidTask,
    TaskContext,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)

package = import_module(PACKAGE)
task, default_task_backend = package.task, package.default_task_backend
TaskResultMismatch = import_module(f"{PACKAGE}.exceptions").TaskResultMismatch

__all__ = [
    "InvalidTask",
    "TaskContext",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "default_task_backend",
    "task",
    "task_enqueued",
    "task_finished",
    "task_started",
]
