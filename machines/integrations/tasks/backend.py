"""The backend: puts tasks on queues, and reads their results."""

import hashlib
import inspect
from collections.abc import Iterable
from datetime import timedelta
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules, import_string

from machines.catalog import builtin_machines
from machines.connections import get_engine
from machines.engine import SignalboxError, errors, limits
from machines.engine.jobs.records import Enqueue, build_arguments

from . import declarations, results
from .framework import BaseTaskBackend, InvalidTask, InvalidTaskBackend, Task, TaskResult, task_backends, task_enqueued
from .options import MACHINE, InvalidOptions, Options, read_options

E047 = "signalbox.E047"


class SignalboxBackend(BaseTaskBackend):
    """Each task is a job of the machine ``django_tasks``, on the queue that its ``queue_name`` names."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @cached_property
    def job_options(self) -> Options:
        """Raises InvalidTaskBackend for OPTIONS that do not fit."""
        try:
            return read_options(self.options)
        except InvalidOptions as error:
            raise InvalidTaskBackend(f"TASKS[{self.alias!r}]: {error}") from None

    def validate_task(self, task: Task) -> None:
        """Check a task, and make it known to workers of this process."""
        super().validate_task(task)
        if (why := limits.check_queue_name(task.queue_name)) is not None:
            raise InvalidTask(f"queue {task.queue_name!r} {why}")
        declarations.add(task)

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put a task on its queue: now, or with the option ``on_commit`` when the transaction around the call commits;
        until then its result has no id.

        Raises InvalidTask, and TypeError or BadPayload for arguments that are no JSON; then nothing is enqueued.
        """
        self.validate_task(task)
        if not is_own(declared := declarations.find_decorated(task).backend):
            path = declarations.get_path(task)
            raise InvalidTask(f"{path} is declared for TASKS[{declared!r}], another backend: workers do not have it")
        result = results.make_result(task, self.alias, args, kwargs)
        job = self._make_job(task, results.describe_task(result), args, kwargs)
        if self.job_options.on_commit:
            build_arguments(job)  # what does not fit is refused here, not after the commit
            transaction.on_commit(partial(self._put, result, job))
        else:
            self._put(result, job)
        return result

    def find_group(self, task: Task, args: Any, kwargs: Any) -> str | None:
        return self._find_argument(self.job_options.group, task, args, kwargs)

    def _find_argument(self, name: str, task: Task, args: Any, kwargs: Any) -> str | None:
        """Return the value of the argument that an option names, as text; None where there is none."""
        if not name:
            return None
        given = inspect.signature(task.func).bind_partial(*(() if not task.takes_context else (None,)), *args, **kwargs)
        value = given.arguments.get(name)
        return None if value is None else str(value)

    def _make_job(self, task: Task, payload: dict[str, Any], args: Any, kwargs: Any) -> Enqueue:
        unique = make_key(payload["task"], self._find_argument(self.job_options.unique, task, args, kwargs))
        debounce = self.job_options.debounce if unique is not None else 0
        if debounce and task.run_after is not None:
            raise InvalidTask(f"a task with run_after cannot wait for its last call: {self.alias!r} has debounce")
        return Enqueue(
            MACHINE,
            declarations.get_handler_name(payload["task"]),
            payload,
            task.queue_name,
            priority=convert_priority(task.priority),
            delay=get_delay(task),
            group=self.find_group(task, args, kwargs),
            unique=unique,
            debounce=debounce,
            **self.job_options.job,
        )

    def _put(self, result: TaskResult, job: Enqueue) -> None:
        engine = get_engine()
        (put,) = engine.enqueue_many([job])
        if isinstance(put, errors.UnknownMachine):
            builtin_machines.publish(engine, MACHINE)
            (put,) = engine.enqueue_many([job])
        if isinstance(put, SignalboxError):
            raise put
        results.set_fields(result, id=put.id)
        task_enqueued.send(type(self), task_result=result)

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result of a task. Raises TaskResultDoesNotExist where it has expired, or the job was
        withdrawn or never was."""
        return results.read_result(result_id, find_task)

    def check(self, **kwargs: Any) -> Iterable[CheckMessage]:
        """List what is wrong with the entry of this backend in ``TASKS``."""
        where = f"TASKS[{self.alias!r}]"
        for queue in sorted(map(str, self.queues)):
            if (why := limits.check_queue_name(queue)) is not None:
                yield Error(f"{where}: the queue {queue!r} {why}", hint="Give it another name in QUEUES.", id=E047)
        if not apps.is_installed("machines"):
            hint = 'Add "machines" to INSTALLED_APPS: its workers run the tasks.'
            yield Error(f"{where}: no worker runs its tasks", hint=hint, id=E047)
        try:
            modules = self.job_options.modules
        except InvalidTaskBackend as error:
            yield Error(str(error), hint="docs/tasks.md has every option.", id=E047)
            return
        for module in modules:
            if not is_module(module):
                hint = "Name it as for an import."
                yield Error(f"{where}: there is no module {module!r}", hint=hint, id=E047)


def is_module(name: str) -> bool:
    """Tell whether a module can be found. Imports the packages around it."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def list_backends() -> list[SignalboxBackend]:
    """List the backends of this kind in ``TASKS``; what is wrong with others is left to the framework."""
    found = []
    for alias, entry in (getattr(settings, "TASKS", None) or {}).items():
        try:
            kind = import_string(entry["BACKEND"])
        except (ImportError, KeyError, TypeError):
            continue
        if isinstance(kind, type) and issubclass(kind, SignalboxBackend):
            found.append(task_backends[alias])
    return found


def is_own(alias: str) -> bool:
    """Tell whether an entry of ``TASKS`` is a backend of this kind."""
    try:
        return isinstance(task_backends[alias], SignalboxBackend)
    except InvalidTaskBackend:
        return False


def find_backend(alias: str) -> SignalboxBackend:
    """Return the backend that an entry of ``TASKS`` names. Raises InvalidTask where it is none of this kind."""
    if not is_own(alias):
        raise InvalidTask(f"TASKS[{alias!r}] is no backend of Signalbox")
    backend: SignalboxBackend = task_backends[alias]
    return backend


def find_task(path: str, alias: str) -> Task:
    """Return a declared task by the path of its function. Raises InvalidTask where nothing here declares it."""
    find_backend(alias)
    if declarations.get(path) is None:
        import_modules()
    if (found := declarations.get(path)) is None:
        raise InvalidTask(
            f"{path!r} is no task that is declared here: declare it with @task in the module tasks of an installed "
            f'app, or in a module that OPTIONS["modules"] of the backend names'
        )
    return found


def import_modules() -> None:
    """Import the modules that declare tasks. An app without one is fine; one that cannot be imported raises."""
    if backends := list_backends():
        autodiscover_modules("tasks")
    for backend in backends:
        for module in backend.job_options.modules:
            import_module(module)


def make_key(path: str, value: str | None) -> str | None:
    """Return the unique key of a task's job: its path and the value, or their digest where that is no key."""
    if value is None or limits.check_unique_key(key := f"{path} {value}") is None:
        return None if value is None else key
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def convert_priority(given: int) -> int:
    """Return the priority of the job: 5 for 0, 6 to 9 for 1 to 100, 4 to 0 for -1 to -100."""
    if given > 0:
        return 5 - (-given * 4 // 100)
    return 5 + given * 5 // 100


def get_delay(task: Task) -> int:
    """Return the ms until a task may run. Raises InvalidTask for more than ten years."""
    if task.run_after is None:
        return 0
    at = task.run_after
    now = timezone.now() if timezone.is_aware(at) else timezone.make_naive(timezone.now())
    delay = (at - now) // timedelta(milliseconds=1)
    if delay > limits.MAX_DELAY:
        raise InvalidTask(f"run_after is {at}; a task waits for ten years at most")
    return max(delay, 0)
