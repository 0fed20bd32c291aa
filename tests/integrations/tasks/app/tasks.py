"""Tasks that the tests enqueue."""

from __future__ import annotations

import asyncio

from machines.tasks import get_job
from tests.integrations.tasks.framework import TaskContext, task

calls: list[str] = []


@task
def add(a: float, b: float = 1) -> float:
    return a + b


@task
def echo(*args: object, **kwargs: object) -> list[object]:
    return [list(args), kwargs]


@task
async def add_async(a: float, b: float) -> float:
    await asyncio.sleep(0)
    return a + b


@task(takes_context=True)
def describe(context: TaskContext, word: str) -> list[object]:
    job = get_job()
    assert job is not None
    job.progress(1, 2, word)
    return [context.attempt, context.task_result.id == job.id, context.task_result.status]


@task(takes_context=True)
def fail_first(context: TaskContext) -> str:
    if context.attempt == 1:
        raise LookupError("not yet")
    return "in the end"


@task
def fail() -> None:
    raise ValueError("never")


@task(backend="once")
def return_set() -> set[int]:
    return {1}


@task(backend="elsewhere")
def foreign() -> None:
    """A task of another backend."""


@task(priority=7, queue_name="mail")
def note(word: str) -> None:
    calls.append(word)


def helper() -> None:
    """No task."""


def undecorated() -> None:
    """A task under another name."""


renamed = task(undecorated)
