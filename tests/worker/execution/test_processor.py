"""One job's run: the handler, and what the engine is told."""

from __future__ import annotations

import asyncio
import threading

import pytest

from machines.engine import errors
from machines.worker.execution.completer import MISSING_DELAY, Completer, Counters, ProgressReporter
from machines.worker.execution.executor import Executor
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.execution.output import OutputKeeper
from machines.worker.job import Job
from tests.worker.builders import BACKOFF, START, places, registry_of, take_one


@pytest.fixture
def process(engine):
    """Takes the one ready job and runs it with the handler given; answers what came of it."""
    executors = []

    def run(handler, *, now=START, before=lambda job: None, **others):
        in_flight, counters, progress_reporter = InFlightJobs(1), Counters(), ProgressReporter(engine)
        completer = Completer(engine, in_flight, counters, progress_reporter, backoff=0.1)
        executor = Executor(registry_of(run=handler, **others), in_flight, completer, output=OutputKeeper(engine, 0))
        executors.append((executor, completer))
        completer.start()
        executor.start()
        job = Job(take_one(engine, now=now), progress_reporter=progress_reporter)
        before(job)
        in_flight.pick_up([job])
        executor.give([job])
        assert in_flight.wait_empty(20), "the job did not end"
        return str(counters).removeprefix("1 ")

    yield run
    for executor, completer in executors:
        executor.stop()
        completer.stop(5)


def fails(job):
    raise ValueError("no such street")


def test_what_a_handler_returns_reaches_the_machine(engine, errand, process):
    errand("e1")
    assert process(lambda job: {"echo": job.data["what"]}) == "completed"
    assert engine.get("errand", "e1").data["answer"] == {"echo": "the errand of e1"}


def test_a_coroutine_works_as_well(engine, errand, process):
    async def handler(job):
        await asyncio.sleep(0)
        return job.attempt

    errand("e1")
    assert process(handler) == "completed"
    assert engine.get("errand", "e1").data["answer"] == 1


@pytest.mark.parametrize("colour", ["plain", "async"])
def test_a_failing_handler_is_tried_again_after_its_backoff(engine, errand, process, colour):
    async def fails_later(job):
        fails(job)

    errand("e1")
    assert process(fails if colour == "plain" else fails_later) == "delayed"
    (job,) = engine.jobs("errand", "errands", place="delayed")
    assert (job.error, job.kind) == ("no such street", "ValueError")
    assert 'raise ValueError("no such street")' in job.trace
    assert engine.get("errand", "e1").state == "doing"


def test_out_of_attempts_the_job_is_dead_and_the_machine_takes_its_on_error(engine, errand, process):
    errand("e1")
    engine.fail(take_one(engine), "the first time", now=START)
    engine.sweep("errand", now=START + BACKOFF)
    assert process(fails, now=START + BACKOFF) == "dead"
    assert places(engine) == {"handled": 1}
    failed = engine.get("errand", "e1")
    assert (failed.state, failed.data["answer"]) == ("failed", ["ValueError", "no such street", 2])


def test_a_kind_that_is_not_tried_again_may_be_a_base_of_what_was_raised(engine, process):
    engine.publish(
        {
            "id": "errand",
            "initial": "doing",
            "states": {"doing": {"invoke": {"src": "run", "queue": "errands", "retry": {"stop": ["LookupError"]}}}},
        }
    )
    engine.create("errand", "e1", now=START)

    def handler(job):
        return {}["nothing here"]

    assert process(handler) == "dead"


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), "x" * 70_000], ids=["a set", "NaN", "too large"])
def test_a_result_that_no_machine_could_hold_counts_as_a_failure(engine, errand, process, result):
    errand("e1")
    assert process(lambda job: result) == "delayed"
    assert engine.jobs("errand", "errands", place="delayed")[0].error


def test_a_job_whose_handler_is_not_here_is_left_for_others(engine, errand, process):
    errand("e1")
    engine.publish(_asks_for_another(engine.definition("errand")))
    errand("e2")
    (first,) = engine.take("errand", "errands", "somebody", now=START)
    assert first.src == "run"
    assert process(fails) == "missing"
    (job,) = engine.jobs("errand", "errands", place="delayed")
    assert (job.src, job.attempt) == ("elsewhere", 0)
    assert MISSING_DELAY > 0


def _asks_for_another(definition):
    definition["states"]["doing"]["invoke"]["src"] = "elsewhere"
    return definition


def test_a_withdrawn_job_is_no_failure(engine, errand, process):
    def handler(job):
        engine.fire("errand", "e1", "cancel")
        return "done anyway"

    errand("e1")
    assert process(handler) == "lost"
    assert engine.get("errand", "e1").state == "cancelled"


def test_a_handler_that_is_told_in_its_wait_ends_there(engine, errand, process):
    begun, went_on = threading.Event(), threading.Event()

    def handler(job):
        begun.set()
        job.wait(30)
        went_on.set()

    errand("e1")
    assert process(handler, before=_lost_once(begun)) == "lost"
    assert not went_on.is_set()


def test_a_job_lost_before_its_turn_is_not_begun(engine, errand, process):
    begun = threading.Event()
    errand("e1")
    assert process(lambda job: begun.set(), before=lambda job: job.abandon("withdrawn")) == "lost"
    assert not begun.is_set()


def test_a_coroutine_that_is_told_is_cancelled(engine, errand, process):
    started, cancelled = threading.Event(), threading.Event()

    async def handler(job):
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    errand("e1")
    assert process(handler, before=_lost_once(started)) == "lost"
    assert cancelled.is_set()


def test_a_coroutine_whose_job_is_lost_before_its_first_step_is_over_as_well(engine, errand, process):
    async def handler(job):
        await asyncio.sleep(30)

    errand("e1")
    assert process(handler, before=lambda job: job.abandon("withdrawn")) == "lost"


def _lost_once(begun):
    def tell(job):
        threading.Thread(target=lambda: (begun.wait(60), job.abandon("withdrawn"))).start()

    return tell


def test_the_lease_of_another_job_lost_inside_a_handler_is_a_failure_like_any_other(engine, errand, process):
    def handler(job):
        raise errors.LeaseLost("some other job", why="gone")

    errand("e1")
    assert process(handler) == "delayed"


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_a_handler_that_would_end_its_thread_is_a_failed_attempt(engine, errand, process, end):
    def handler(job):
        raise end

    errand("e1")
    assert process(handler) == "delayed"
    assert type(end).__name__ in engine.jobs("errand", "errands", place="delayed")[0].error


def test_a_coroutine_that_cancels_itself_is_a_failed_attempt(engine, errand, process):
    async def handler(job):
        raise asyncio.CancelledError

    errand("e1")
    assert process(handler) == "delayed"
    assert "cancelled itself" in engine.jobs("errand", "errands", place="delayed")[0].error


def test_a_coroutine_that_would_end_the_loop_is_a_failed_attempt_and_the_next_one_runs(engine, errand, process):
    async def handler(job):
        if job.instance == "e1":
            raise SystemExit(3)
        return job.instance

    errand("e1")
    assert process(handler) == "delayed"
    errand("e2")
    assert process(handler) == "completed"
