"""The tasks that this process has declared: each is a handler of its workers, named like the task's function.

A worker runs what was declared and nothing else. No name from Redis is imported: modules that declare tasks are those
called ``tasks`` of the installed apps, those that the settings name, and what these import.
"""

import hashlib
import re
import sys
from collections.abc import Callable

from machines.engine import limits

from .framework import InvalidTask, Task

_declared: dict[str, Task] = {}
_listener: Callable[[str, Task], None] | None = None


def get_path(task: Task) -> str:
    return f"{task.func.__module__}.{task.func.__qualname__}"


def get_handler_name(path: str) -> str:
    """Return the name of a task's handler: its path, or of one that no handler can have, its end and a digest."""
    if limits.check_handler_name(path) is None:
        return path
    digest = hashlib.sha256(path.encode()).hexdigest()[:8]
    end = re.sub(r"[^A-Za-z0-9_.-]", "_", path)[-(limits.MAX_NAME - 10) :]
    return f"_{end}-{digest}"


def add(task: Task) -> None:
    """Remember a task that code here declared."""
    path = get_path(task)
    known = _declared.get(path)
    if known is not None and known.func is task.func:
        return
    _declared[path] = task
    if _listener is not None:
        _listener(path, task)


def get(path: str) -> Task | None:
    """Return the task whose function has a path, or None. Imports nothing."""
    return _declared.get(path)


def listen(listener: Callable[[str, Task], None]) -> None:
    """Have ``listener`` called with every task, those so far included, by path."""
    global _listener
    _listener = listener
    for path, task in list(_declared.items()):
        listener(path, task)


def find_decorated(task: Task) -> Task:
    """Return the task that the name of a task's function stands for in its module. Raises InvalidTask: without one,
    workers may not have it."""
    func = task.func
    known = getattr(sys.modules.get(func.__module__), func.__qualname__, None)
    if getattr(known, "func", None) is not func:
        raise InvalidTask(
            f"{get_path(task)} is no task for workers: decorate the function with @task at module level, "
            f"so that its name stands for the task"
        )
    return known
