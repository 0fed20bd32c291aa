"""What is known of a task: from its job while there is one, and from a record that is kept after it succeeded."""

import builtins
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from machines.conf import conf
from machines.connections import get_engine
from machines.engine import Job, errors
from machines.engine.jobs.lifecycle import MAX_RESULT
from machines.engine.keys import Partition
from machines.engine.storage import Storage
from machines.worker import Job as WorkerJob
from machines.worker.failure import format_trace

from . import declarations
from .framework import (
    InvalidTask,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
)
from .options import MACHINE

UNKNOWN = "unknown"  # the worker of an attempt before the last ten
FIELDS = {
    "task": str, "args": list, "kwargs": dict, "backend": str, "enqueued_at": str, "priority": int, "run_after": str,
}  # fmt: skip
REQUIRED = ("task", "args", "kwargs", "backend", "enqueued_at")
RECORD = {"queue": str, "started": int, "taken": int, "finished": int, "workers": list, "errors": list}
STATUSES = {"leased": TaskResultStatus.RUNNING, "dead": TaskResultStatus.FAILED, "handled": TaskResultStatus.FAILED}
"""By the place of a job; in any other it is READY."""
ENDED_BY_WORKER = {"lost": "machines.engine.errors.LeaseLost", "timeout": "machines.worker.job.Timeout"}
FindTask = Callable[[str, str], Task]


class ResultRefused(TypeError):
    """A task returned what cannot be kept. It is not tried again."""


# Results


def make_result(task: Task, alias: str, args: Any, kwargs: Any) -> TaskResult:
    """Make the result of a task that waits. Raises TypeError, which names the argument that is no JSON."""
    try:
        return _make(task, alias, args, kwargs, enqueued_at=read_time(time.time_ns() // 1_000_000))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{declarations.get_path(task)}: {_find_culprit(args, kwargs) or error}") from None


def _make(task: Task, alias: str, args: Any, kwargs: Any, **fields: Any) -> TaskResult:
    base = {
        "id": "",
        "status": TaskResultStatus.READY,
        "enqueued_at": None,
        "started_at": None,
        "finished_at": None,
        "last_attempted_at": None,
        "errors": [],
        "worker_ids": [],
    }
    return TaskResult(task=task, backend=alias, args=args, kwargs=kwargs, **(base | fields))


def _find_culprit(args: Any, kwargs: Any) -> str | None:
    for name, value in [*enumerate(args), *kwargs.items()]:
        try:
            normalize_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            place = name + 1 if isinstance(name, int) else repr(name)
            return f"argument {place} is no JSON: {error}; pass text, numbers, lists and dicts"
    return None


def set_fields(result: TaskResult, **fields: Any) -> None:
    """Set fields of a result, which is frozen for its users."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)


def read_time(ms: int) -> datetime | None:
    """Return a moment as Django's settings want it; None for 0."""
    if not ms:
        return None
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return at if settings.USE_TZ else timezone.make_naive(at)


# Jobs


def describe_task(result: TaskResult) -> dict[str, Any]:
    """Return the input of a task's job."""
    task = result.task
    payload = {
        "task": declarations.get_path(task),
        "args": result.args,
        "kwargs": result.kwargs,
        "backend": result.backend,
        "enqueued_at": result.enqueued_at.isoformat(),
    }
    if task.priority:
        payload["priority"] = task.priority
    if task.run_after is not None:
        payload["run_after"] = task.run_after.isoformat()
    return payload


def read_payload(payload: Any) -> Mapping[str, Any]:
    """Return the input of a job. Raises InvalidTask for one that no backend wrote."""
    given = payload if isinstance(payload, dict) else {}
    wrong = [name for name, kind in FIELDS.items() if not isinstance(given.get(name, kind()), kind)]
    wrong += [name for name in REQUIRED if name not in given]
    if wrong:
        raise InvalidTask(f"the input of the job is not that of a task: {', '.join(wrong)}")
    return given


def build_result(task: Task, payload: Mapping[str, Any], job: Job, **fields: Any) -> TaskResult:
    """Build the result of a task from its job, which waits or runs."""
    return _make(
        _use(task, payload, job.queue),
        payload["backend"],
        payload["args"],
        payload["kwargs"],
        id=job.id,
        enqueued_at=_read_moment(payload, "enqueued_at"),
        started_at=read_time(job.started),
        last_attempted_at=read_time(job.taken),
        **fields,
    )


def _use(task: Task, payload: Mapping[str, Any], queue: str) -> Task:
    """Return a task as it was enqueued."""
    at = _read_moment(payload, "run_after")
    priority, backend = payload.get("priority", 0), payload["backend"]
    if (task.priority, task.queue_name, task.run_after, task.backend) == (priority, queue, at, backend):
        return task  # making another would check it again
    return replace(task, priority=priority, queue_name=queue, run_after=at, backend=backend)


def _read_moment(payload: Mapping[str, Any], name: str) -> datetime | None:
    try:
        return datetime.fromisoformat(payload[name]) if name in payload else None
    except ValueError as error:
        raise InvalidTask(f"{name} of the job: {error}") from None


def list_workers(job: Job) -> list[str]:
    """List the worker of each attempt so far, the running one included."""
    found = [str(one.get("worker", UNKNOWN)) for one in job.log if one["outcome"] != "handed back"]
    if job.place == "leased":
        found.append(job.worker)
    return [UNKNOWN] * (job.attempt - len(found)) + found


# Errors


def list_errors(job: Job) -> list[TaskError]:
    """List why the attempts of a job failed, the last ten at most: with traceback where a worker could write one."""
    ended = [one for one in job.log if one["outcome"] != "handed back"]
    if not ended:
        return []
    key = Partition(job.root).task_errors(job.id)
    attempts = [str(one["attempt"]) for one in ended]
    kept = Storage(get_engine().client).command("HMGET", key, *attempts)
    return [make_error(*json.loads(text)) if text else _read_end(one) for one, text in zip(ended, kept, strict=True)]


def make_error(path: str, traceback: str) -> TaskError:
    return TaskError(exception_class_path=path, traceback=traceback)


def _read_end(ended: Mapping[str, Any]) -> TaskError:
    """Build the error of an attempt that its function did not end: the lease ran out, or the deadline."""
    kind, said = str(ended.get("kind", "")), str(ended.get("error", ""))
    path = ENDED_BY_WORKER.get(ended["outcome"])
    if path is None:
        path = f"builtins.{kind if isinstance(getattr(builtins, kind, None), type) else 'Exception'}"
    return make_error(path, ": ".join(word for word in (kind, said) if word))


def write_error(job: WorkerJob, error: BaseException) -> TaskError:
    """Keep the exception of an attempt beside the job, and return it."""
    kind = TypeError if isinstance(error, ResultRefused) else type(error)
    found = make_error(f"{kind.__module__}.{kind.__qualname__}", format_trace(error))
    key = Partition(job.taken.root).task_errors(job.id)
    text = json.dumps([found.exception_class_path, found.traceback])
    job.write(key, "HSET", key, str(job.attempt), text)
    job.write(key, "PEXPIRE", key, conf.TASK_RESULTS * 1000)
    return found


# Records


def write_success(job: WorkerJob, payload: Mapping[str, Any], result: TaskResult, value: Any) -> Any:
    """Keep what a task returned for as long as the settings say; return it as JSON has it. Raises ResultRefused."""
    value, taken = check_value(value), job.taken
    record = {
        "payload": payload,
        "queue": taken.queue,
        "started": taken.started,
        "taken": taken.taken,
        "finished": max(round(time.time() * 1000), taken.taken),
        "workers": result.worker_ids,
        "errors": [[one.exception_class_path, one.traceback] for one in result.errors],
        "value": value,
    }
    key = Partition(taken.root).task_result(job.id)
    job.write(key, "SET", key, json.dumps(record), "PX", conf.TASK_RESULTS * 1000)
    set_fields(result, finished_at=read_time(record["finished"]))
    return value


def check_value(value: Any) -> Any:
    """Return what a task returned as JSON has it. Raises ResultRefused."""
    try:
        value = normalize_json(value)
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ResultRefused(f"what the task returned is no JSON: {error}") from error
    if len(text) > MAX_RESULT:
        raise ResultRefused(f"what the task returned has {len(text)} bytes of JSON; {MAX_RESULT} are allowed")
    return value


def read_result(id: str, find: FindTask) -> TaskResult:
    """Read the result of a task by its id. ``find`` gives the task for a path and the alias of a backend. Raises
    TaskResultDoesNotExist, and what ``find`` raises."""
    if not isinstance(id, str) or re.fullmatch(r"[0-9]{1,4}-[0-9]{1,16}", id) is None:
        raise TaskResultDoesNotExist(id)
    engine = get_engine()
    key = engine.keys.partition(MACHINE, int(id.partition("-")[0])).task_result(id)
    storage = Storage(engine.client)
    if (text := storage.command("GET", key)) is not None:
        return _read_record(id, _parse_record(id, text), find)
    try:
        job = engine.job(MACHINE, id)
    except errors.LookupFailed:
        if (text := storage.command("GET", key)) is None:  # else it has just ended
            raise TaskResultDoesNotExist(id) from None
        return _read_record(id, _parse_record(id, text), find)
    if job.finished and job.finished + conf.TASK_RESULTS * 1000 < time.time() * 1000:
        raise TaskResultDoesNotExist(id)
    return _read_job(job, find)


def _read_job(job: Job, find: FindTask) -> TaskResult:
    try:
        payload = read_payload(job.input)
    except InvalidTask:
        raise TaskResultDoesNotExist(job.id) from None
    return build_result(
        find(payload["task"], payload["backend"]),
        payload,
        job,
        status=STATUSES.get(job.place, TaskResultStatus.READY),
        finished_at=read_time(job.finished),
        errors=list_errors(job),
        worker_ids=list_workers(job),
    )


def _parse_record(id: str, text: str) -> Mapping[str, Any]:
    """Return what ``write_success`` wrote. Raises TaskResultDoesNotExist for what it did not."""
    try:
        record = json.loads(text)
        read_payload(record["payload"])
        if all(isinstance(record[name], kind) for name, kind in RECORD.items()) and "value" in record:
            return record  # type: ignore[no-any-return]
    except (ValueError, TypeError, KeyError, InvalidTask):
        pass
    raise TaskResultDoesNotExist(id)


def _read_record(id: str, record: Mapping[str, Any], find: FindTask) -> TaskResult:
    payload = record["payload"]
    result = _make(
        _use(find(payload["task"], payload["backend"]), payload, record["queue"]),
        payload["backend"],
        payload["args"],
        payload["kwargs"],
        id=id,
        status=TaskResultStatus.SUCCESSFUL,
        enqueued_at=_read_moment(payload, "enqueued_at"),
        started_at=read_time(record["started"]),
        last_attempted_at=read_time(record["taken"]),
        finished_at=read_time(record["finished"]),
        errors=[make_error(*one) for one in record["errors"]],
        worker_ids=record["workers"],
    )
    set_fields(result, _return_value=record["value"])
    return result
