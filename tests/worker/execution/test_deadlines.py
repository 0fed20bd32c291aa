"""Attempts that may take only so long."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from machines.worker.execution import in_flight, pools
from machines.worker.execution.executor import Deadlines
from machines.worker.job import Job
from tests.installation.processes import eventually
from tests.worker.builders import Running, places, registry_of, take_one

ATTEMPT = 300  # ms


@pytest.fixture
def put(engine, errand):
    """Puts a job with a deadline and one attempt."""
    errand("e1")
    engine.fire("errand", "e1", "cancel")

    def put(src="run", **given):
        return engine.enqueue("errand", src, queue="errands", **{"timeout": ATTEMPT, "attempts": 1} | given).id

    return put


@pytest.fixture
def let():
    let = threading.Event()
    yield let
    let.set()


def _dead(engine, id):
    return any(job.id == id for job in engine.jobs("errand", "errands", place="dead"))


def test_a_job_is_overdue_a_moment_before_its_lease_ends(engine, put):
    put(timeout=60_000)
    (taken,) = engine.take("errand", "errands", "alice")
    job, overdue = Job(taken), threading.Event()
    watched = Deadlines(lambda _: overdue.set(), clock=lambda: job.ends - 0.01)
    watched.watch([job])
    assert overdue.wait(10)
    watched.stop()


@pytest.mark.parametrize("kind", ["deaf", "listening", "coroutine"])
def test_an_attempt_that_is_not_over_by_then_has_failed(engine, put, let, kind):
    cancelled = threading.Event()

    def deaf(job):
        let.wait(60)

    def listening(job):
        job.wait(20)

    async def coroutine(job):
        try:
            await asyncio.sleep(20)
        finally:
            cancelled.set()

    id = put()
    handler = {"deaf": deaf, "listening": listening, "coroutine": coroutine}[kind]
    with Running(engine, registry_of(run=handler)) as worker:
        eventually(lambda: _dead(engine, id), "the attempt has failed")
        job = engine.job("errand", id)
        assert job.kind == "Timeout"
        if kind == "coroutine":
            assert cancelled.wait(60)
        # The latter where a sweep was quicker to say so.
        eventually(lambda: worker.summary() in ("1 dead", "1 lost"), "the worker counts it")


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_the_next_job_does_not_wait_for_a_handler_that_does_not_end(engine, put, let, kind):
    def function(job):
        if job.payload == "stuck":
            let.wait(60)

    async def coroutine(job):  # one that will not be cancelled
        while job.payload == "stuck" and not let.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)

    handler = {"function": function, "coroutine": coroutine}[kind]
    stuck = put(input="stuck")
    with Running(engine, registry_of(run=handler), concurrency=1) as worker:
        eventually(lambda: _dead(engine, stuck), "the first has failed")
        put(input="quick")
        eventually(lambda: worker.counters.done == 1, "another has taken its place and done the second")
        eventually(lambda: engine.workers()[0].hanging == {"errand/errands": ["run"]}, "it is reported")
        let.set()
        eventually(lambda: engine.workers()[0].hanging == {}, "the stuck one has ended")
        put(input="quick")
        eventually(lambda: worker.counters.done == 2, "it goes on")
        if kind == "function":
            assert sum(thread.name.startswith("handler-") for thread in threading.enumerate()) >= 1


def test_a_coroutine_too_many_that_does_not_end_exhausts_the_worker(engine, put, let, monkeypatch):
    monkeypatch.setattr(in_flight, "MOST_STUCK", 1)
    monkeypatch.setattr(pools, "MOMENT", 0.05)

    async def handler(job):
        while not let.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)

    for _ in range(4):
        put()
    with Running(engine, registry_of(run=handler), concurrency=1) as worker:
        eventually(lambda: worker.is_exhausted, "one is left behind, and the second is one too many")
    assert places(engine) == {"dead": 2, "ready": 2}


def test_a_thread_too_many_that_does_not_end_exhausts_the_worker(engine, put, let, monkeypatch):
    monkeypatch.setattr(in_flight, "MOST_STUCK", 2)
    for _ in range(5):
        put()
    with Running(engine, registry_of(run=lambda job: let.wait(60)), concurrency=1) as worker:
        eventually(lambda: worker.is_exhausted, "two are left behind, and the third is one too many")
    assert places(engine) == {"dead": 3, "ready": 2}


def test_a_job_whose_time_is_over_before_its_turn_goes_back_without_losing_an_attempt(engine, put, let):
    begun = threading.Event()

    def handler(job):
        begun.set()
        let.wait(60)

    put(timeout=0)
    with Running(engine, registry_of(run=handler), concurrency=1, prefetch=1) as worker:
        assert begun.wait(60)
        id = put()
        eventually(lambda: worker.counters.outcomes["returned"], "it was taken ahead and went back")
        assert engine.job("errand", id).attempt <= 1
        let.set()


def test_a_job_that_ends_in_time_is_let_alone(engine, put):
    overdue = []
    watch = Deadlines(overdue.append)
    put(timeout=60_000)
    job = Job(take_one(engine, now=None))
    watch.watch([job])
    assert job.end()
    watch.stop()
    assert overdue == []
