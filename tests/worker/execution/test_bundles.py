"""Handlers that take several jobs at once."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time

import pytest

from machines.engine import errors
from machines.engine.storage import Storage
from machines.worker import HandBack, HandlerError
from machines.worker.execution.output import DONE, read_output
from machines.worker.registry import Registry
from tests.cases import for_each
from tests.worker.builders import Running, drain, places


def registry_of_many(function, *, max_jobs=10, is_async=False):
    """A registry whose handler ``run`` is the function, plain or as a coroutine."""
    registry = Registry()

    async def run(jobs):
        await asyncio.sleep(0)
        return function(jobs)

    registry.handler("run", max_jobs=max_jobs)(run if is_async else function)
    return registry


@pytest.fixture
def errands(engine, errand):
    """Instances that wait for a job each, by the answers of their jobs once they have one."""

    def create(count):
        for number in range(count):
            errand(f"e{number}")
        return lambda: [engine.get("errand", f"e{number}").data.get("answer") for number in range(count)]

    return create


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_gets_as_many_jobs_as_it_may_have_and_each_has_its_own_result(engine, errands, is_async):
    answers, sizes = errands(24), []

    def run(jobs):
        sizes.append(len(jobs))
        return [job.instance for job in jobs]

    drain(engine, registry_of_many(run, is_async=is_async), concurrency=1)
    assert answers() == [f"e{number}" for number in range(24)]
    assert max(sizes) == 10
    assert sum(sizes) == 24


@pytest.mark.parametrize("is_async", [False, True])
def test_each_job_has_its_own_outcome(engine, errands, is_async):
    answers, seen = errands(3), []

    def run(jobs):
        seen.append([(job.instance, job.attempt) for job in jobs])
        outcomes = {"e0": "done", "e1": ValueError("no such street"), "e2": HandBack(0) if len(seen) == 1 else "later"}
        return [outcomes[job.instance] for job in jobs]

    launcher = drain(engine, registry_of_many(run, is_async=is_async), concurrency=3)
    assert answers() == ["done", ["ValueError", "no such street", 2], "later"]
    assert [("e1", 2)] in seen
    assert [("e2", 1)] in seen  # the attempt that was handed back did not count
    assert launcher.summary() == "2 completed, 1 dead, 1 delayed, 1 returned"


class Wordless(BaseException):
    def __repr__(self):
        raise LookupError("no words")


def test_an_outcome_that_cannot_be_reported_fails_its_job_alone(engine, errands):
    answers = errands(3)

    def run(jobs):
        return [Wordless() if job.instance == "e1" else "done" for job in jobs]

    drain(engine, registry_of_many(run), concurrency=3)
    assert answers() == ["done", ["LookupError", "no words", 2], "done"]


@pytest.mark.parametrize("seconds", [86_401, -1, float("inf"), float("nan")])
def test_a_hand_back_for_no_time_that_a_queue_takes_is_a_failed_attempt(engine, errands, seconds):
    answers = errands(1)

    def run(jobs):
        raise HandBack(seconds)

    drain(engine, registry_of_many(run))
    assert answers() == [["ValueError", f"a job is handed back for 0 to 86400 seconds, not {seconds:g}", 2]]


def test_nothing_returned_means_that_all_are_done(engine, errands):
    errands(3)
    assert drain(engine, registry_of_many(lambda jobs: None)).summary() == "3 completed"


@pytest.mark.parametrize("found", [[1, 2, 3, 4], "abc", {"e0": 1}])
def test_anything_but_an_outcome_for_each_fails_all(engine, errands, found):
    answers = errands(3)
    drain(engine, registry_of_many(lambda jobs: found), concurrency=3)
    assert [kind for kind, *_ in answers()] == ["TypeError"] * 3


def test_after_a_call_that_raised_each_job_is_tried_alone(engine, errands):
    answers = errands(3)

    def run(jobs):
        if any(job.instance == "e1" for job in jobs):
            raise RuntimeError("cannot be done together")
        return [len(jobs) for _ in jobs]

    drain(engine, registry_of_many(run), concurrency=3)
    assert answers() == [1, ["RuntimeError", "cannot be done together", 2], 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_withdrawn_job_leaves_the_others_alone(engine, errands, is_async):
    answers, running, go_on = errands(3), queue.SimpleQueue(), threading.Event()

    def wait(jobs):
        running.put(jobs)
        go_on.wait(10)
        return [job.instance for job in jobs]

    async def wait_async(jobs):
        return await asyncio.to_thread(wait, jobs)

    registry = Registry()
    registry.handler("run", max_jobs=10)(wait_async if is_async else wait)
    with Running(engine, registry, concurrency=3) as launcher:
        jobs = running.get(timeout=10)
        engine.fire("errand", "e1", "cancel")
        wait_for(lambda: [job.instance for job in jobs if job.lost] == ["e1"])
        go_on.set()
        assert launcher.in_flight.wait_empty(10)
    assert answers() == ["e0", None, "e2"]
    assert engine.get("errand", "e1").state == "cancelled"


def test_the_loss_of_one_job_that_the_handler_hears_hands_back_the_others(engine, errands):
    answers, calls = errands(2), []

    def run(jobs):
        calls.append(len(jobs))
        if len(calls) == 1:
            engine.fire("errand", "e0", "cancel")
            raise errors.LeaseLost(jobs[0].id, why="gone")
        return ["again"] * len(jobs)

    launcher = drain(engine, registry_of_many(run), concurrency=2, beat=60)
    assert launcher.summary() == "1 completed, 1 lost, 1 returned"
    assert calls == [2, 1]
    assert answers() == [None, "again"]


def test_a_coroutine_is_cancelled_when_all_its_jobs_are_lost(engine, errands):
    errands(2)
    begun, cancelled = threading.Event(), threading.Event()

    async def run(jobs):
        begun.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    registry = Registry()
    registry.handler("run", max_jobs=10)(run)
    with Running(engine, registry, concurrency=2):
        assert begun.wait(10)
        engine.fire("errand", "e0", "cancel")
        assert not cancelled.wait(0.5)
        engine.fire("errand", "e1", "cancel")
        assert cancelled.wait(10)


@pytest.mark.parametrize("is_async", [False, True])
def test_jobs_past_their_deadline_fail_and_the_worker_goes_on(engine, errand, is_async):
    engine.create("errand", "ready")
    ids = [engine.enqueue("errand", "run", {"n": n}, queue="errands", timeout=400, attempts=1).id for n in range(3)]
    done = threading.Event()

    def hang(jobs):
        if any(job.payload for job in jobs):
            done.wait(60)

    async def hang_async(jobs):
        if any(job.payload for job in jobs):
            await asyncio.sleep(60)

    registry = Registry()
    registry.handler("run", max_jobs=10)(hang_async if is_async else hang)
    with Running(engine, registry, concurrency=1) as launcher:
        wait_for(lambda: places(engine).get("dead") == len(ids))
        assert launcher.in_flight.open == 0
        later = engine.enqueue("errand", "run", None, queue="errands")
        wait_for(lambda: launcher.counters.done >= 2)
        assert later.id
        done.set()
    assert {job.kind for job in engine.jobs("errand", "errands", place="dead")} == {"Timeout"}


def wait_for(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, "it did not come to pass"
        time.sleep(0.02)


@for_each("max_jobs", [0, -1, 101, True, 1.5, "10"])
def test_a_number_that_no_take_brings_is_refused(max_jobs):
    with pytest.raises(HandlerError, match="from 1 to 100"):
        Registry().handler("run", max_jobs=max_jobs)


def test_what_a_call_says_is_the_output_of_each_of_its_jobs(engine, errands):
    errands(2)
    ids = [job.id for job in engine.jobs("errand", "errands", place="ready")]

    def run(jobs):
        logging.getLogger("shop").warning("indexed %d", len(jobs))
        return ["done", ValueError("no such street")]

    drain(engine, registry_of_many(run), concurrency=2, job_logs=64)
    root, storage = engine.keys.partition("errand", 0).root, Storage(engine.client)
    done, failed = [read_output(storage, engine.keys, root, id) for id in ids]
    assert done.endswith("WARNING shop: indexed 2\n")
    assert "WARNING shop: indexed 2\n\n-- attempt 2 --\n" in failed
    keys = [engine.keys.output(root, id) for id in ids]
    assert [engine.client.ttl(key) > DONE for key in keys] == [False, True]
