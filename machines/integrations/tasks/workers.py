"""Has workers of this project run its tasks."""

from __future__ import annotations

from inspect import iscoroutinefunction

from machines.worker import Job
from machines.worker.registry import handlers

from . import declarations, execution
from .backend import import_modules, list_backends
from .builtin_machine import MACHINE
from .framework import Task


def prepare() -> None:
    """Have each declared task be a handler, import the modules that declare some, and have the queues served."""
    declarations.listen(add_handler)
    import_modules()
    for backend in list_backends():
        for queue in backend.queues:
            handlers.add_queue(MACHINE, queue)


def add_handler(path: str, task: Task) -> None:
    if iscoroutinefunction(task.func):

        async def handle(job: Job) -> None:
            await execution.run_async(task, job)
    else:

        def handle(job: Job) -> None:  # type: ignore[misc]
            execution.run(task, job)

    handle.__module__, handle.__qualname__ = task.func.__module__, task.func.__qualname__
    handlers.handler(declarations.get_handler_name(path), queue=False, machine=MACHINE)(handle)
