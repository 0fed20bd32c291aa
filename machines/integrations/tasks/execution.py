"""Has workers of a project run its tasks: one attempt with its arguments, signals, and what is kept of its end.

The worker reports the end of the job, and tries it again as its queue says; see ``machines.worker``.
"""

import asyncio
from inspect import iscoroutinefunction
from typing import Any

from django.dispatch import Signal
from django.utils import timezone

from machines.catalog.builtin_machines import FLOW
from machines.engine import errors
from machines.worker import Job
from machines.worker.failure import list_bases
from machines.worker.registry import handlers

from . import declarations, results
from .backend import find_backend, import_modules, list_backends
from .current_job import current
from .framework import (
    InvalidTask,
    Task,
    TaskContext,
    TaskResultStatus,
    log_task_finished,
    log_task_started,
    task_finished,
    task_started,
)
from .options import MACHINE

LOGS = {id(log_task_started), id(log_task_finished)}  # as signals know their receivers


class Attempt:
    """One attempt of a task."""

    def __init__(self, task: Task, job: Job) -> None:
        """Raise InvalidTask for a job that no backend made for this task."""
        self._job, self._payload = job, results.read_payload(job.payload)
        if self._payload["task"] != declarations.get_path(task):
            raise InvalidTask(f"the job was not enqueued as the task {declarations.get_path(task)}")
        self.sender = type(find_backend(self._payload["backend"]))
        self.result = results.build_result(
            task,
            self._payload,
            job.taken,
            status=TaskResultStatus.RUNNING,
            errors=results.list_errors(job.taken),
            worker_ids=results.list_workers(job.taken),
        )

    @property
    def arguments(self) -> list[Any]:
        args = list(self.result.args)
        return [TaskContext(task_result=self.result), *args] if self.result.task.takes_context else args

    def succeed(self, value: Any) -> Any:
        """Keep what the task returned: in a record of its own, and of a task of a flow as the result of the job, which
        is returned. Raises ResultRefused."""
        if is_flow := self._job.machine != MACHINE:
            value = results.check_value(value)
        else:
            value = results.write_success(self._job, self._payload, self.result, value)
        results.set_fields(self.result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
        return value if is_flow else None

    def fail(self, error: BaseException) -> bool:
        """Keep why the attempt failed; tell whether it was the last."""
        self.result.errors.append(results.write_error(self._job, error))
        stops = {type(error).__name__, *list_bases(error)} & set(self._job.taken.stop)
        is_last = bool(stops) or self._job.attempt >= self._job.attempts
        if is_last:
            results.set_fields(self.result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
        return is_last

    def is_lost(self, error: BaseException) -> bool:
        """Tell whether the function ended because the job is no longer this worker's."""
        return isinstance(error, errors.LeaseLost) and error.job == self._job.id


def run(task: Task, job: Job) -> Any:
    """Run a plain function, and return the result of the job."""
    attempt = Attempt(task, job)
    said = {"sender": attempt.sender, "task_result": attempt.result}
    task_started.send_robust(**said)
    token = current.set(job)
    try:
        value = attempt.succeed(task.func(*attempt.arguments, **attempt.result.kwargs))
    except (Exception, SystemExit) as error:
        if not attempt.is_lost(error) and attempt.fail(error):
            task_finished.send_robust(**said)
        raise
    finally:
        current.reset(token)
    task_finished.send_robust(**said)
    return value


async def run_async(task: Task, job: Job) -> Any:
    """Run a coroutine, and return the result of the job."""
    attempt = await asyncio.to_thread(Attempt, task, job) if job.attempt > 1 else Attempt(task, job)
    said = {"sender": attempt.sender, "task_result": attempt.result}
    await _send(task_started, said)
    token = current.set(job)
    try:
        value = attempt.succeed(await task.func(*attempt.arguments, **attempt.result.kwargs))
    except (Exception, SystemExit) as error:
        if not attempt.is_lost(error) and attempt.fail(error):
            await _send(task_finished, said)
        raise
    finally:
        current.reset(token)
    await _send(task_finished, said)
    return value


async def _send(signal: Signal, said: dict[str, Any]) -> None:
    """Send a signal from a coroutine. Django calls plain receivers in a thread, which the framework's log does not
    need."""
    if all(entry[0][0] in LOGS for entry in signal.receivers):
        signal.send_robust(**said)
    else:
        await signal.asend_robust(**said)


def prepare() -> None:
    """Have each declared task be a handler, import the modules that declare some, and have the queues served."""
    declarations.listen(add_handler)
    import_modules()
    for backend in list_backends():
        for queue in backend.queues:
            handlers.add_queue(MACHINE, queue)


def add_handler(path: str, task: Task) -> None:
    if iscoroutinefunction(task.func):

        async def handle(job: Job) -> Any:
            return await run_async(task, job)
    else:

        def handle(job: Job) -> Any:  # type: ignore[misc]
            return run(task, job)

    handle.__module__, handle.__qualname__ = task.func.__module__, task.func.__qualname__
    handlers.handler(declarations.get_handler_name(path), queue=False, machine=MACHINE, family=FLOW)(handle)
