"""``python manage.py worker`` as a real process, and what is left when it is killed."""

from __future__ import annotations

import os
import signal

import pytest

from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import places

KILLED_LEASE = 300  # ms


@pytest.fixture
def gated(engine, prefix):
    """A machine whose handler begins and waits; ``begun()`` is the instance that began."""
    engine.publish(builders.errand(src="gated", lease=f"{KILLED_LEASE}ms", backoff="10ms"))
    return lambda: any(engine.client.blpop([f"{prefix}begun"], timeout=3) for _ in range(60))


def ended(process, within=90):
    output, _ = process.communicate(timeout=within)
    assert process.returncode == 0, output
    return output


def test_draining_does_everything_and_says_what_it_did(engine, start):
    engine.publish(builders.errand(src="quick"))
    for number in range(10):
        engine.create("errand", f"e{number}")
    assert "10 completed" in ended(start("--drain", "--concurrency", "3"))
    assert engine.counts("errand")["done"] == 10


def test_killed_with_no_warning_it_loses_nothing(engine, start, gated, prefix):
    for number in range(3):
        engine.create("errand", f"e{number}")
    first = start("--concurrency", "2")
    assert gated()
    assert gated()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert places(engine) == {"ready": 1, "leased": 2}
    engine.client.rpush(f"{prefix}go", 1, 1, 1)
    ended(start("--drain"))
    assert engine.counts("errand")["done"] == 3
    assert places(engine) == {}


def test_work_that_kills_its_worker_each_time_ends_dead(engine, start, gated):
    engine.create("errand", "e1")
    for _ in range(2):
        worker = start()
        assert gated()
        worker.kill()
        worker.wait()
    ended(start("--drain"))
    assert places(engine) == {"handled": 1}
    assert engine.get("errand", "e1").state == "failed"


def test_on_term_it_finishes_what_it_has_and_leaves(engine, start, gated, prefix):
    engine.create("errand", "e1")
    worker = start("--concurrency", "1")
    assert gated()
    engine.create("errand", "e2")
    worker.terminate()
    engine.client.rpush(f"{prefix}go", 1)
    assert "1 completed" in ended(worker)
    assert engine.get("errand", "e1").state == "done"
    assert places(engine) == {"ready": 1}
    assert engine.workers() == []


def test_past_its_deadline_it_hands_back(engine, start, gated):
    engine.create("errand", "e1")
    worker = start("--grace", "0.2")
    assert gated()
    worker.terminate()
    ended(worker)
    assert places(engine) == {"ready": 1}
    assert engine.jobs("errand", "errands", place="ready")[0].attempt == 0


def test_on_a_second_term_it_hands_back_now(engine, start, gated):
    engine.create("errand", "e1")
    worker = start("--grace", "60")
    assert gated()
    worker.terminate()
    assert any("stopping: no further jobs, 1 in hand" in line for line in worker.stdout)
    worker.terminate()
    ended(worker)
    assert places(engine) == {"ready": 1}


def test_several_workers_fire_each_timer_once(engine, start):
    states = {"A": {"after": {"300ms": "B"}}, "B": {"after": {"300ms": "C"}}, "C": {"type": "final"}}
    engine.publish({"id": "clock", "initial": "A", "states": states})
    workers = [start() for _ in range(2)]
    eventually(lambda: len(engine.workers()) == 2, "both are there")
    for number in range(100):
        engine.create("clock", f"c{number}")
    eventually(lambda: engine.counts("clock")["C"] == 100, "all have come to their end")
    assert engine.live("clock").flow == {"1:t1": 100, "1:t2": 100}
    for worker in workers:
        worker.terminate()
        ended(worker)


def test_it_serves_only_the_queues_it_is_told_to(engine, start):
    for queue in ("a", "b"):
        engine.publish(builders.errand(f"on_{queue}", src="quick", queue=queue))
        engine.create(f"on_{queue}", "e1")
    ended(start("--drain", "--queues", "b"))
    assert [engine.get(f"on_{queue}", "e1").state for queue in "ab"] == ["doing", "done"]


def test_on_usr1_it_is_quiet(engine, start, gated, prefix):
    engine.create("errand", "e1")
    worker = start("--concurrency", "1")
    assert gated()
    engine.create("errand", "e2")
    worker.send_signal(signal.SIGUSR1)
    eventually(lambda: engine.workers()[0].status == "quiet", "its row says so")
    engine.client.rpush(f"{prefix}go", 1, 1)
    eventually(lambda: engine.get("errand", "e1").state == "done", "what it had is done")
    assert places(engine) == {"ready": 1}
    worker.terminate()
    ended(worker)
