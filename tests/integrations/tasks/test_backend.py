"""Enqueueing: what becomes of a task on its queue, and what is refused."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import transaction

from machines.engine import BadPayload
from machines.integrations.tasks.backend import convert_priority
from machines.integrations.tasks.options import MACHINE
from tests.integrations.tasks.framework import InvalidTask, TaskResultStatus, task_enqueued


def list_jobs(engine, queue="default", place="ready"):
    return engine.jobs(MACHINE, queue, place=place) if MACHINE in engine.machines() else []


def test_a_task_is_a_job_with_the_name_of_its_function(engine, tasks):
    result = tasks.add.enqueue(2, b=3)
    (job,) = list_jobs(engine)
    assert (job.id, job.src, job.attempts, job.priority) == (result.id, "tests.integrations.tasks.app.tasks.add", 2, 5)
    assert job.input.pop("enqueued_at") == result.enqueued_at.isoformat()
    assert job.input == {"task": job.src, "args": [2], "kwargs": {"b": 3}, "backend": "default"}
    assert tasks.add.get_result(result.id) == result
    assert (result.status, result.args, result.kwargs, result.attempts) == (TaskResultStatus.READY, [2], {"b": 3}, 0)
    assert result.enqueued_at.tzinfo is not None


async def test_the_same_from_a_coroutine(engine, tasks):
    result = await tasks.add_async.aenqueue(2, b=3)
    assert (await tasks.add_async.aget_result(result.id)).kwargs == {"b": 3}


def test_queue_priority_and_time_of_a_task(engine, tasks):
    later = datetime.now(UTC) + timedelta(hours=1)
    tasks.note.enqueue("now")
    result = tasks.note.using(priority=-100, run_after=later).enqueue("later")
    (job,), (delayed,) = list_jobs(engine, "mail"), list_jobs(engine, "mail", "delayed")
    assert (job.priority, delayed.priority) == (6, 0)
    assert abs(delayed.due - later.timestamp() * 1000) < 60_000
    found = tasks.note.get_result(result.id)
    assert (found.task.priority, found.task.queue_name, found.task.run_after) == (-100, "mail", later)
    assert found.task == result.task
    tasks.note.using(run_after=later - timedelta(days=1)).enqueue("late")
    assert len(list_jobs(engine, "mail")) == 2


def test_an_argument_names_the_group_of_a_task(engine, tasks, settings):
    options = settings.TASKS["default"]["OPTIONS"] | {"group": "b"}
    settings.TASKS = settings.TASKS | {"default": settings.TASKS["default"] | {"OPTIONS": options}}
    for args, kwargs in [((1, "acme"), {}), ((1,), {"b": 7}), ((1,), {})]:
        tasks.add.enqueue(*args, **kwargs)
    assert [job.group for job in engine.take(MACHINE, "default", "w", count=3)] == ["acme", "7", ""]


def test_of_calls_with_one_unique_argument_the_last_wins(engine, tasks, settings):
    options = settings.TASKS["default"]["OPTIONS"] | {"unique": "b", "debounce": 5000}
    settings.TASKS = settings.TASKS | {"default": settings.TASKS["default"] | {"OPTIONS": options}}
    first, last, other, alone = (tasks.add.enqueue(*args) for args in ((1, "7"), (2, "7"), (3, "8"), (4,)))
    assert first.id == last.id != other.id
    found = tasks.add.get_result(first.id)
    assert (found.args, found.status) == ([2, "7"], found.status.READY)
    assert {job.id for job in list_jobs(engine, "default", "delayed")} == {last.id, other.id}
    assert [job.id for job in list_jobs(engine, "default")] == [alone.id]
    with pytest.raises(InvalidTask, match="'default' has debounce"):
        tasks.add.using(run_after=datetime.now(UTC)).enqueue(5, "9")


@pytest.mark.parametrize("debounce", [0, 5000])
def test_tasks_with_one_value_keep_jobs_of_their_own(engine, tasks, settings, debounce):
    options = settings.TASKS["default"]["OPTIONS"] | {"unique": "b", "debounce": debounce}
    settings.TASKS = settings.TASKS | {"default": settings.TASKS["default"] | {"OPTIONS": options}}
    for _ in range(2):
        for value in (7, "x" * 300):
            tasks.add.enqueue(1, b=value)
            tasks.add_async.enqueue(1, b=value)
    jobs = list_jobs(engine, "default", "delayed" if debounce else "ready")
    assert sorted(job.src.rpartition(".")[2] for job in jobs) == ["add"] * 2 + ["add_async"] * 2
    assert jobs[0].unique == "tests.integrations.tasks.app.tasks.add 7"


@pytest.mark.pure
def test_priorities_keep_their_order():
    found = [convert_priority(given) for given in range(-100, 101)]
    assert found == sorted(found)
    assert set(found) == set(range(10))
    assert (convert_priority(-1), convert_priority(0), convert_priority(1)) == (4, 5, 6)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "said"),
    [
        ((datetime.now(UTC),), {}, TypeError, r"app\.tasks\.add: argument 1 is no JSON"),
        ((1,), {"b": {"c": [object()]}}, TypeError, "argument 'b' is no JSON"),
        ((1, b"\xff"), {}, TypeError, "argument 2 is no JSON"),
        ((math.nan,), {}, BadPayload, r"field 'args\.0' is nan"),
        ((2**60,), {}, BadPayload, "send it as text"),
        ((), {"b": {1: 2}}, BadPayload, "a key that is not text: 1"),
        (("x" * 70_000,), {}, BadPayload, "65536 are allowed"),
    ],
)
def test_arguments_that_are_no_json_are_refused_and_nothing_is_enqueued(engine, tasks, args, kwargs, error, said):
    heard = []
    task_enqueued.connect(heard.append, weak=False, dispatch_uid="test")
    try:
        with pytest.raises(error, match=said):
            tasks.add.enqueue(*args, **kwargs)
    finally:
        task_enqueued.disconnect(dispatch_uid="test")
    assert list_jobs(engine) == heard == []


def test_what_is_no_task_for_workers_is_refused(engine, tasks):
    with pytest.raises(InvalidTask, match="Queue 'post' is not valid"):
        tasks.add.using(queue_name="post")
    with pytest.raises(InvalidTask, match="undecorated is no task for workers"):
        tasks.renamed.enqueue()
    with pytest.raises(InvalidTask, match="ten years at most"):
        tasks.add.using(run_after=datetime.now(UTC) + timedelta(days=5000)).enqueue(1)
    assert list_jobs(engine) == []


def test_a_queue_with_a_name_that_none_can_have(tasks, settings):
    settings.TASKS = {"default": settings.TASKS["default"] | {"QUEUES": []}}
    with pytest.raises(InvalidTask, match="queue 'no queue'"):
        tasks.add.using(queue_name="no queue")


@pytest.mark.django_db(transaction=True)
def test_a_task_waits_for_the_commit_as_django_documents_it(engine, tasks):
    with transaction.atomic():
        transaction.on_commit(partial(tasks.add.enqueue, 1))
        assert list_jobs(engine) == []
    assert len(list_jobs(engine)) == 1
    with transaction.atomic():
        transaction.on_commit(partial(tasks.add.enqueue, 2))
        transaction.set_rollback(True)
    assert len(list_jobs(engine)) == 1


@pytest.mark.django_db(transaction=True)
def test_with_the_option_enqueue_itself_waits_for_the_commit(engine, tasks):
    add, heard = tasks.add.using(backend="committed"), []
    task_enqueued.connect(lambda task_result, **_: heard.append(task_result.id), weak=False, dispatch_uid="test")
    try:
        with transaction.atomic():
            result = add.enqueue(1)
            assert (result.id, result.status, list_jobs(engine), heard) == ("", TaskResultStatus.READY, [], [])
        assert [job.id for job in list_jobs(engine)] == [result.id] == heard
        with transaction.atomic():
            add.enqueue(2)
            transaction.set_rollback(True)
        with pytest.raises(BadPayload, match="send it as text"), transaction.atomic():
            add.enqueue(2**60)  # at the call, and not after the commit
        assert len(list_jobs(engine)) == 1
        assert add.enqueue(3).id == list_jobs(engine)[1].id, "without a transaction it is put at once"
    finally:
        task_enqueued.disconnect(dispatch_uid="test")
