"""Handlers that hang: what is left of their worker, and who takes its place. With real processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from machines.worker.execution import pools
from machines.worker.options import EXHAUSTED
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import Running, places, registry_of

MOST = 20  # handlers that a worker leaves behind
ATTEMPT = 300  # ms


@pytest.fixture
def put(engine):
    """Puts jobs on a queue of their own."""
    engine.publish(builders.errand(src="gated"))

    def put(src, count=1, queue="errands", **given):
        return [engine.enqueue("errand", src, queue=queue, attempts=1, **given) for _ in range(count)]

    return put


@pytest.fixture
def begun(engine, prefix):
    """Waits until a handler of the app says that it began."""
    return lambda: any(engine.client.blpop([f"{prefix}begun"], timeout=3) for _ in range(60))


def test_an_exhausted_worker_finishes_what_runs_and_ends_for_another_to_take_its_place(
    engine, start, put, prefix, begun
):
    engine.create("errand", "healthy")
    worker = start("--concurrency", "4", "--prefetch", "0")
    assert begun()
    put("hung", MOST + 5, timeout=ATTEMPT)
    eventually(lambda: [row.status for row in engine.workers()] == ["exhausted"], "the room says so")
    (row,) = engine.workers()
    assert row.hanging == {"errand/errands": ["hung"]}
    engine.client.rpush(f"{prefix}go", 1)
    output, _ = worker.communicate(timeout=90)
    assert worker.returncode == EXHAUSTED, output
    assert "handlers hang past their deadlines (hung)" in output
    assert engine.get("errand", "healthy").state == "done"
    assert engine.workers() == []
    left = places(engine)
    assert left["dead"] > MOST
    assert set(left) == {"dead", "ready"}, "nothing is leased any more"


def test_a_supervisor_replaces_an_exhausted_worker(engine, start, put):
    supervisor = start("--processes", "2", "--concurrency", "1")
    eventually(lambda: len(engine.workers()) == 2, "both are there")
    first = {row.pid for row in engine.workers()}
    put("hung", 2 * MOST + 2, timeout=ATTEMPT)  # one of the two has more than it leaves behind
    eventually(lambda: {row.pid for row in engine.workers()} - first, "another is there")
    eventually(lambda: places(engine) == {"dead": 2 * MOST + 2}, "all are done with")
    put("quick")
    eventually(lambda: "ready" not in places(engine) and "leased" not in places(engine), "and jobs go on")
    supervisor.terminate()
    output, _ = supervisor.communicate(timeout=90)
    assert f"ended with {EXHAUSTED}; another takes its place" in output


def test_coroutines_do_not_wait_for_a_blocked_loop_while_another_worker_is_idle(engine, start, put, prefix, begun):
    blocked = start("--concurrency", "4", "--prefetch", "50")
    put("blocking")
    assert begun()
    put("tiny", 40)
    start("--concurrency", "4")
    eventually(lambda: engine.stats("errand")["errands"].completed == 40, "the other worker has done them all")
    eventually(lambda: _row(engine, blocked).status == "blocked", "the room says so")
    assert _row(engine, blocked).hanging == {"errand/errands": ["blocking"]}
    engine.client.rpush(f"{prefix}go", 1)
    eventually(lambda: _row(engine, blocked).status == "working", "its loop answers again")
    assert _row(engine, blocked).hanging == {}
    assert places(engine) == {}


def _row(engine, process):
    return next(row for row in engine.workers() if row.pid == process.pid)


def _handlers(**functions):
    return registry_of(gated=lambda job: None, **functions)


def test_functions_of_a_worker_go_on_while_its_loop_is_blocked_and_coroutines_after(engine, put):
    begun, let = threading.Event(), threading.Event()

    async def blocking(job):
        begun.set()
        while not let.is_set():
            time.sleep(0.01)  # noqa: ASYNC251  what is tested

    async def tiny(job):
        pass

    with Running(engine, _handlers(blocking=blocking, tiny=tiny, function=lambda job: None)) as worker:
        put("blocking", queue="tiny")
        assert begun.wait(60)
        put("tiny", 3, queue="tiny")
        eventually(lambda: engine.workers()[0].status == "blocked", "it notices")
        put("function", 5)
        eventually(lambda: worker.counters.done == 5, "functions go on")
        eventually(lambda: places(engine, queue="tiny") == {"ready": 3, "leased": 1}, "others may take these")
        let.set()
        eventually(lambda: worker.counters.done == 9, "the loop goes on")
        assert not worker.is_exhausted


def test_a_coroutine_past_its_deadline_that_blocks_the_loop_for_good_exhausts_the_worker(engine, put, monkeypatch):
    monkeypatch.setattr(pools, "HOPELESS", 0.5)
    let = threading.Event()

    async def blocking(job):
        let.wait(60)

    with Running(engine, _handlers(blocking=blocking)) as worker:
        put("blocking", timeout=ATTEMPT)
        eventually(lambda: worker.is_exhausted, "it gives itself up")
        let.set()
    assert places(engine) == {"dead": 1}


def test_an_exhausted_worker_that_is_told_to_stop_hands_back_what_runs(engine, start, put, begun):
    engine.create("errand", "healthy")
    worker = start("--concurrency", "4", "--prefetch", "0", "--grace", "0.2")
    assert begun()
    put("hung", MOST + 1, timeout=ATTEMPT)
    eventually(lambda: [row.status for row in engine.workers()] == ["exhausted"], "it waits for the healthy one")
    os.kill(worker.pid, signal.SIGTERM)
    worker.communicate(timeout=90)
    assert worker.returncode == EXHAUSTED
    assert [job.src for job in engine.jobs("errand", "errands", place="ready")] == ["gated"]
