"""A real worker process runs tasks; the room shows them."""

from __future__ import annotations

import importlib

import pytest
from django.urls import reverse

from machines.integrations.tasks.options import MACHINE
from tests.installation.processes import eventually
from tests.integrations.tasks.framework import TaskResultStatus


def test_a_worker_runs_tasks_of_all_kinds_and_queues(engine, tasks, start):
    further = importlib.import_module("tests.integrations.tasks.further")
    task = further.multiply_the_first_number_that_is_given_by_the_second_one_that_is_given
    long, plain, coroutine = task.enqueue(6, 7), tasks.add.enqueue(1), tasks.add_async.enqueue(1, 2)
    retried, failed, mail = tasks.fail_first.enqueue(), tasks.fail.enqueue(), tasks.note.enqueue("one")
    for result in (long, plain, coroutine):
        assert engine.job(MACHINE, result.id).src.isascii()
    worker = start("worker", "--drain")
    said = worker.communicate(timeout=60)[0]
    assert worker.returncode == 0, said
    for result in (long, plain, coroutine, retried, failed, mail):
        result.refresh()
    assert (long.return_value, plain.return_value, coroutine.return_value) == (42, 2, 3)
    assert (retried.return_value, retried.attempts, mail.return_value) == ("in the end", 2, None)
    assert (failed.status, len(failed.errors)) == (TaskResultStatus.FAILED, 2)
    assert failed.worker_ids == [plain.worker_ids[0]] * 2


def test_an_idle_worker_hears_the_first_task_of_a_queue(engine, tasks, start):
    start("worker")
    eventually(lambda: engine.workers(), "the worker has begun")
    first = tasks.note.enqueue("first")
    eventually(lambda: tasks.note.get_result(first.id).is_finished, "it has run")


@pytest.mark.django_db
def test_the_room_shows_a_task_with_arguments_progress_and_error(engine, tasks, run, admin_client):
    tasks.add.enqueue(19, b=23)
    (job,) = engine.take(MACHINE, "default", "w1")
    engine.progress(job, 3, 4, "rows")
    failed = tasks.fail.using(backend="once").enqueue()
    run()
    assert "django_tasks" in admin_client.get(reverse("signalbox:queues")).content.decode()
    page = admin_client.get(reverse("signalbox:queue", args=[MACHINE, "default"]), {"place": "leased"}).content.decode()
    assert "tests.integrations.tasks.app.tasks.add" in page
    page = admin_client.get(reverse("signalbox:job", args=[MACHINE, job.id])).content.decode()
    assert all(word in page for word in ("19", "23", "rows", "tests.integrations.tasks.app.tasks.add"))
    page = admin_client.get(reverse("signalbox:job", args=[MACHINE, failed.id])).content.decode()
    assert "ValueError" in page
    assert "never" in page
