"""Jobs that somebody else wrote: only declared tasks run, and no name of a payload is imported."""

from __future__ import annotations

import sys

import pytest

from machines.catalog import builtin_machines
from machines.integrations.tasks.options import MACHINE
from machines.worker.registry import ForeignJob
from tests.integrations.tasks.framework import InvalidTask, TaskResultDoesNotExist, default_task_backend

UNUSED = "this"  # a module of Python that prints when it is imported
ADD = "tests.integrations.tasks.app.tasks.add"


def make(task, **fields):
    common = {"args": [1], "kwargs": {}, "backend": "default", "enqueued_at": "2026-11-23T12:00:00+00:00"}
    return {"task": task} | common | fields


@pytest.fixture
def forge(engine, tasks):
    """Puts a job of a stranger on the queue."""
    builtin_machines.publish(engine, MACHINE)
    tasks.add.get_backend().validate_task(tasks.add)  # declared here, as in a worker that imported its module
    return lambda src, payload: engine.enqueue(MACHINE, src, payload, queue="default", attempts=1)


@pytest.mark.parametrize(
    "path", [f"{UNUSED}.s", "os.system", "tests.integrations.tasks.app.tasks.helper", "subprocess.Popen"]
)
def test_a_function_that_is_no_declared_task_is_not_run(forge, run, path):
    forge(path, make(path))
    with pytest.raises(AssertionError, match="no handler"):
        run()
    assert UNUSED not in sys.modules


@pytest.mark.parametrize(
    "payload",
    [
        make("os.system"),
        make(ADD, args={"a": 1}),
        make(ADD, kwargs=[1]),
        make(ADD, backend=None),
        make(ADD, backend="elsewhere"),
        make(ADD, backend="none"),
        make(ADD, priority="high"),
        make(ADD, run_after="soon"),
        make(ADD, enqueued_at=1),
        None,
        [],
        "text",
    ],
)
def test_a_declared_task_is_not_run_with_what_no_backend_wrote(engine, forge, run, tasks, payload):
    job = forge(ADD, payload)
    (ran,) = run()
    assert (ran.outcome, type(ran.error)) == ("dead", InvalidTask)
    with pytest.raises((InvalidTask, TaskResultDoesNotExist)):
        default_task_backend.get_result(job.id)


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"payload": {}}', '{"payload": 1, "value": 1}'])
def test_a_record_that_no_worker_wrote_is_no_result(engine, forge, tasks, text):
    engine.client.set(engine.keys.partition(MACHINE, 0).task_result("0-7"), text)
    with pytest.raises(TaskResultDoesNotExist):
        default_task_backend.get_result("0-7")


def test_the_result_of_a_task_that_nobody_declared(forge):
    job = forge("x", make(f"{UNUSED}.s"))
    with pytest.raises(InvalidTask, match="is no task that is declared here"):
        default_task_backend.get_result(job.id)
    assert UNUSED not in sys.modules


def test_a_job_of_another_machine_is_no_task(engine, forge, run, tasks):
    engine.publish({"id": "door", "initial": "shut", "states": {"shut": {}}})
    engine.enqueue("door", ADD, make(ADD))
    from machines.testing.job_runner import JobRunner

    (ran,) = JobRunner(engine, None).run(["door"], None, 10, False)
    assert (ran.outcome, type(ran.error)) == ("dead", ForeignJob)


def test_a_task_of_another_backend_is_refused(engine, tasks):
    assert tasks.foreign.enqueue().backend == "elsewhere"
    with pytest.raises(InvalidTask, match=r"foreign is declared for TASKS\['elsewhere'\], another backend"):
        tasks.foreign.using(backend="default").enqueue()
    assert engine.machines() == {}
