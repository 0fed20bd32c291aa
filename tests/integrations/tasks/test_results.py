"""Results: while a task waits, runs, is tried again, and after its end."""

from __future__ import annotations

import time

import pytest

from machines.integrations.tasks.options import MACHINE
from tests.configuration import configure
from tests.integrations.tasks.framework import (
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    default_task_backend,
    task_finished,
    task_started,
)


@pytest.fixture
def heard():
    """What the signals of workers said: a letter and the status."""
    found = []

    def began(task_result, **_):
        found.append(f"began {task_result.status}")

    def ended(task_result, **_):
        found.append(f"ended {task_result.status}")

    task_started.connect(began)
    task_finished.connect(ended)
    yield found
    task_started.disconnect(began)
    task_finished.disconnect(ended)


def test_the_result_of_a_task(engine, tasks, run, heard):
    result = tasks.add.enqueue(2, b=3)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    run()
    assert not result.is_finished
    result.refresh()
    assert (result.status, result.return_value, result.errors) == (TaskResultStatus.SUCCESSFUL, 5, [])
    assert (result.worker_ids, result.attempts) == (["test"], 1)
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert heard == ["began RUNNING", "ended SUCCESSFUL"]
    with pytest.raises(TaskResultMismatch):
        tasks.note.get_result(result.id)


def test_all_kinds_of_values_come_back(engine, tasks, run):
    given = ["text", 1, 1.5, True, None, [1, [2]], {"a": {"b": None}}, "ä\u2028"]
    result = tasks.echo.enqueue(*given, key=given)
    run()
    assert tasks.echo.get_result(result.id).return_value == [given, {"key": given}]


def test_a_coroutine_and_a_context(engine, tasks, run):
    one, two = tasks.add_async.enqueue(1, 2), tasks.describe.enqueue("half")
    run()
    one.refresh()
    two.refresh()
    assert (one.return_value, two.return_value) == (3, [1, True, "RUNNING"])


def test_a_task_that_runs(engine, tasks):
    result = tasks.add.enqueue(1)
    engine.take(MACHINE, "default", "w1")
    result.refresh()
    assert (result.status, result.worker_ids, result.finished_at) == (TaskResultStatus.RUNNING, ["w1"], None)


def test_a_task_that_is_tried_again(engine, tasks, run, heard):
    result = tasks.fail_first.enqueue()
    run()
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.READY, 1, 1)
    assert result.errors[0].exception_class is LookupError
    assert "not yet" in result.errors[0].traceback
    engine.move_now(MACHINE, "default", result.id, actor="test", reason="test")
    run()
    result.refresh()
    assert (result.return_value, result.attempts, len(result.errors)) == ("in the end", 2, 1)
    assert heard == ["began RUNNING", "began RUNNING", "ended SUCCESSFUL"]


def test_a_task_that_fails_for_good_is_a_dead_job(engine, tasks, run, heard):
    result = tasks.fail.enqueue()
    run()
    engine.move_now(MACHINE, "default", result.id, actor="test", reason="test")
    run()
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError]
    assert result.finished_at >= result.last_attempted_at
    assert heard[-1] == "ended FAILED"
    (job,) = engine.jobs(MACHINE, "default", place="dead")
    assert (job.id, job.kind, job.error) == (result.id, "ValueError", "never")
    engine.redrive(MACHINE, "default", result.id, actor="test", reason="test")
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_a_lease_that_ran_out_is_an_error_of_the_task(engine, tasks):
    result = tasks.add.enqueue(1)
    engine.take(MACHINE, "default", "w1", lease=1, now=0)
    engine.sweep(MACHINE)
    result.refresh()
    assert [error.exception_class_path for error in result.errors] == ["machines.engine.errors.LeaseLost"]


def test_a_value_that_is_no_json_fails_without_another_attempt(engine, tasks, run, settings):
    settings.TASKS = settings.TASKS | {"once": settings.TASKS["default"]}
    result = tasks.return_set.enqueue()
    (ran,) = run()
    assert ran.outcome == "dead"
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, TypeError)
    assert "ResultRefused" in result.errors[0].traceback


def refresh_for(result, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result.refresh()
        time.sleep(0.05)


def test_results_go_after_the_time_of_the_settings(engine, tasks, run, settings):
    done, failed = tasks.add.enqueue(1), tasks.fail.using(backend="once").enqueue()
    configure(settings, TASK_RESULTS=1)
    run()
    key = engine.keys.partition(MACHINE, 0).task_result(done.id)
    assert engine.client.pttl(key) in (-2, *range(1001)), "it is gone, or will be"
    for result in (done, failed):
        with pytest.raises(TaskResultDoesNotExist):
            refresh_for(result, 30)


@pytest.mark.parametrize("id", ["", "0-99", "99-1", "nothing", "0-1\n", "0-" + "9" * 80, None, 7])
def test_no_such_result(engine, tasks, id):
    tasks.add.enqueue(1)
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result(id)


def test_no_result_before_the_first_task(engine, tasks):
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result("0-1")
