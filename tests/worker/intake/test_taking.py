"""Who gets a job, and who may finish it."""

from __future__ import annotations

import pytest

from machines.engine import errors
from machines.worker.intake.bell_listener import BellListener
from machines.worker.intake.fetcher import Fetcher, QueueWaiter
from machines.worker.intake.served_queues import ServedQueues
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import LEASE, START, places, registry_of, take_one


def test_one_of_two_workers_gets_the_job_and_the_other_nothing(engine, errand):
    errand("e1")
    assert take_one(engine, "alice").instance == "e1"
    assert engine.take("errand", "errands", "bob", now=START) == []


def test_jobs_are_shared_out_in_the_order_they_came(engine, errand):
    for number in range(5):
        errand(f"e{number}")
    first = engine.take("errand", "errands", "alice", count=2, now=START)
    second = engine.take("errand", "errands", "bob", count=10, now=START)
    assert [job.instance for job in first + second] == ["e0", "e1", "e2", "e3", "e4"]


def test_a_taken_job_carries_what_its_handler_needs(engine, errand):
    errand("e1")
    job = take_one(engine)
    assert (job.src, job.attempt, job.attempts, job.lease) == ("run", 1, 2, LEASE)
    assert job.data["what"] == "the errand of e1"
    assert job.lease_until == START + LEASE


def test_completing_moves_the_instance_and_ends_the_job(engine, errand):
    errand("e1")
    moved = engine.complete(take_one(engine), {"found": 3}, now=START)
    assert (moved.state, moved.data["answer"]) == ("done", {"found": 3})
    assert places(engine) == {}


def test_a_job_finished_twice_moves_the_instance_once(engine, errand):
    errand("e1")
    job = take_one(engine)
    version = engine.complete(job, now=START).revision
    with pytest.raises(errors.LeaseLost):
        engine.complete(job, now=START)
    assert engine.get("errand", "e1").revision == version


def test_an_expired_lease_is_taken_back_and_the_first_ones_completion_is_refused(engine, errand):
    errand("e1")
    late = take_one(engine, "alice")
    assert engine.sweep("errand", now=START + LEASE - 1) == 0
    assert engine.sweep("errand", now=START + LEASE) == 1
    again = take_one(engine, "bob", now=START + LEASE)
    assert (again.id, again.attempt, again.key) == (late.id, 2, late.key)
    with pytest.raises(errors.LeaseLost):
        engine.complete(late, "too late", now=START + LEASE)
    assert engine.get("errand", "e1").state == "doing"
    assert engine.complete(again, "in time", now=START + LEASE).data["answer"] == "in time"


def test_the_late_one_is_refused_even_before_anybody_else_has_taken_the_job(engine, errand):
    errand("e1")
    late = take_one(engine)
    engine.sweep("errand", now=START + LEASE)
    for call in (engine.complete, lambda job: engine.fail(job, "late"), engine.hand_back):
        with pytest.raises(errors.LeaseLost):
            call(late)
    assert places(engine) == {"ready": 1}


def test_an_extended_lease_is_not_taken_back(engine, errand):
    errand("e1")
    job = take_one(engine)
    assert engine.extend(job, LEASE, now=START + LEASE - 1) == [True]
    assert engine.sweep("errand", now=START + LEASE) == 0
    assert engine.complete(job).state == "done"


def test_work_that_kills_its_worker_ends_in_dead_and_not_in_a_loop(engine, errand):
    errand("e1")
    now = START
    for _ in range(2):
        take_one(engine, now=now)
        now += LEASE
        engine.sweep("errand", now=now)
    assert places(engine) == {"handled": 1}
    assert engine.get("errand", "e1").state == "failed"


def test_a_job_handed_back_is_ready_at_once_and_has_lost_no_attempt(engine, errand):
    errand("e1")
    engine.hand_back(take_one(engine), now=START)
    assert take_one(engine, "bob").attempt == 1


def test_a_job_handed_back_for_later_is_ready_later(engine, errand):
    errand("e1")
    engine.hand_back(take_one(engine), delay=5_000, now=START)
    assert places(engine) == {"delayed": 1}
    assert engine.take("errand", "errands", "bob", now=START + 4_999) == []
    assert take_one(engine, "bob", now=START + 5_000).attempt == 1


def test_leaving_the_state_withdraws_the_job(engine, errand):
    errand("e1")
    job = take_one(engine)
    engine.fire("errand", "e1", "cancel")
    assert places(engine) == {}
    assert engine.extend(job, LEASE) == [False]
    with pytest.raises(errors.LeaseLost):
        engine.complete(job)
    assert engine.get("errand", "e1").state == "cancelled"


def test_a_busy_queue_does_not_keep_the_worker_from_the_others(engine):
    for name in ("busy", "quiet"):
        engine.publish(builders.errand(name, queue=name))
    for number in range(20):
        engine.create("busy", f"b{number}")
    seconds = [0.0]
    registry = registry_of(run=print)
    listener = BellListener(engine)
    waiter = QueueWaiter(listener, 0.1)
    fetcher = Fetcher(engine, ServedQueues(engine, registry), waiter, "alice", rescan=60, clock=lambda: seconds[0])
    fetcher.look()
    listener.start()
    eventually(lambda: waiter.hears, "it hears the bells")
    fetcher.look()
    assert [job.machine for job in fetcher.fetch(2)] == ["busy", "busy"]
    assert [job.machine for job in fetcher.fetch(2)] == ["busy", "busy"]
    engine.create("quiet", "q1")
    waiter.wait()
    fetcher.look()
    assert "quiet" in [job.machine for job in fetcher.fetch(2)]
    listener.stop()
