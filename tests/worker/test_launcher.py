"""The whole worker, in this process."""

from __future__ import annotations

import sys
import threading

import pytest

from machines.engine import Engine, errors
from tests.installation.processes import eventually

from . import builders
from .builders import Running, drain, places, registry_of


class Gate:
    """A handler that tells when it has begun and goes on when it is let."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Event()
        self.jobs = []

    def __call__(self, job):
        self.jobs.append(job)
        self.begun.release()
        assert self.let.wait(60)
        return "let"

    def patient(self, job):
        """The same, but listening for the loss of its job."""
        self.jobs.append(job)
        self.begun.release()
        job.wait(20)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.let.set()


def state(engine, id):
    return engine.get("errand", id).state


def test_draining_works_until_nothing_is_left(engine, errand):
    for number in range(20):
        errand(f"e{number}")
    worker = drain(engine, registry_of(run=lambda job: job.instance))
    assert worker.summary() == "20 completed"
    assert engine.counts("errand")["done"] == 20
    assert places(engine) == {}


def test_draining_waits_for_retries_and_ends_when_the_rest_is_dead(engine):
    def handler(job):
        raise RuntimeError("never")

    engine.publish(builders.errand(backoff="20ms"))
    engine.create("errand", "e1")
    worker = drain(engine, registry_of(run=handler))
    assert worker.summary() == "1 dead, 1 delayed"
    assert state(engine, "e1") == "failed"


def test_once_does_one_batch_and_stops(engine, errand):
    for number in range(5):
        errand(f"e{number}")
    worker = builders.Launcher(engine, registry_of(run=print), builders.options(once=True, concurrency=2))
    worker.run()
    assert places(engine) == {"ready": 3}
    assert engine.counts("errand")["done"] == 2


def test_an_idle_worker_hears_the_bell_at_once(engine, errand):
    with Running(engine, registry_of(run=print), block=3600) as worker:
        eventually(lambda: engine.workers() and worker.served_queues.served, "the worker is there")
        errand("e1")
        eventually(lambda: state(engine, "e1") == "done", "the job is done")


def test_an_idle_worker_hears_the_bell_of_every_partition(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish(builders.errand())
    with Running(engine, registry_of(run=print), block=3600, rescan=3600):
        eventually(lambda: engine.workers(), "the worker is there")
        for id in map(str, range(6)):
            engine.create("errand", id)
            eventually(lambda id=id: state(engine, id) == "done", f"job {id} is done")
    engine.client.close()


def test_an_idle_worker_asks_the_queues_nothing(engine, errand):
    errand("e1")
    with Running(engine, registry_of(run=print), block=0.1, rescan=0.1, sweep=60, beat=60, tick=60) as worker:
        eventually(lambda: "1 completed" in worker.summary(), "the first job is done")
        eventually(lambda: _still(engine), "half a second without a function call, in which it has looked five times")


def _still(engine):
    before = _function_calls(engine)
    threading.Event().wait(0.5)
    return _function_calls(engine) == before


def _function_calls(engine):
    return engine.client.info("commandstats").get("cmdstat_fcall", {"calls": 0})["calls"]


def test_a_machine_published_while_it_runs_is_picked_up(engine):
    with Running(engine, registry_of(run=print)):
        eventually(engine.workers, "the worker is there")
        engine.publish(builders.errand())
        engine.create("errand", "e1")
        eventually(lambda: state(engine, "e1") == "done", "the new machine's job is done")


def test_it_never_holds_more_than_it_can_run(engine, errand, gate):
    for number in range(5):
        errand(f"e{number}")
    with Running(engine, registry_of(run=gate), concurrency=2):
        for _ in range(2):
            assert gate.begun.acquire(timeout=60)
        assert places(engine) == {"ready": 3, "leased": 2}
        assert not gate.begun.acquire(timeout=0.3)
        gate.let.set()
        eventually(lambda: engine.counts("errand")["done"] == 5, "all are done")


def test_one_slow_handler_does_not_hold_up_the_others(engine, gate):
    engine.publish(builders.errand("slow", src="slow"))
    engine.publish(builders.errand("quick", src="quick"))
    engine.create("slow", "s")
    with Running(engine, registry_of(slow=gate, quick=print), concurrency=2):
        assert gate.begun.acquire(timeout=60)
        for number in range(5):
            engine.create("quick", f"q{number}")
        eventually(lambda: engine.counts("quick")["done"] == 5, "the quick ones are done")
        gate.let.set()


def test_a_withdrawn_jobs_handler_learns_of_it_while_it_runs(engine, errand, gate):
    errand("e1")
    with Running(engine, registry_of(run=gate.patient), concurrency=1):
        assert gate.begun.acquire(timeout=60)
        engine.fire("errand", "e1", "cancel")
        errand("e2")
        assert gate.begun.acquire(timeout=60), "the handler did not end, there was no room for the next job"
        assert gate.jobs[0].lost
        engine.fire("errand", "e2", "cancel")


def test_a_lease_is_renewed_while_a_handler_works(engine, gate):
    engine.publish(builders.errand(lease="800ms"))
    engine.create("errand", "e1")
    with Running(engine, registry_of(run=gate)) as worker:
        assert gate.begun.acquire(timeout=60)
        first = _leased_until(engine)
        eventually(lambda: _leased_until(engine) > first + 800, "it is renewed past the end of the first lease")
        gate.let.set()
        eventually(lambda: state(engine, "e1") == "done", "the job is done")
    assert worker.summary() == "1 completed"
    assert len(gate.jobs) == 1


def _leased_until(engine):
    (job,) = engine.jobs("errand", "errands", place="leased")
    return job.lease_until


def test_what_is_missing_here_is_left_to_the_worker_that_has_it(engine):
    engine.publish(builders.errand(src="elsewhere"))
    engine.create("errand", "e1")
    drain(engine, registry_of(run=print))
    assert places(engine) == {"ready": 1}
    drain(engine, registry_of(elsewhere=print))
    assert state(engine, "e1") == "done"


def test_stopping_lets_running_jobs_finish_and_takes_no_more(engine, errand, gate):
    errand("e1")
    with Running(engine, registry_of(run=gate), concurrency=1):
        assert gate.begun.acquire(timeout=60)
        errand("e2")
        threading.Timer(0.3, gate.let.set).start()
    assert (state(engine, "e1"), places(engine)) == ("done", {"ready": 1})
    assert engine.workers() == []


def test_past_the_deadline_what_runs_is_handed_back(engine, errand, gate):
    errand("e1")
    with Running(engine, registry_of(run=gate), grace=0.2):
        assert gate.begun.acquire(timeout=60)
    assert places(engine) == {"ready": 1}
    assert engine.jobs("errand", "errands", place="ready")[0].attempt == 0
    gate.let.set()


def test_asked_a_second_time_it_hands_back_now(engine, errand, gate):
    errand("e1")
    with Running(engine, registry_of(run=gate), grace=60) as worker:
        assert gate.begun.acquire(timeout=60)
        worker.stop()
    assert places(engine) == {"ready": 1}


def test_a_handler_that_ends_after_its_job_was_handed_back_changes_nothing(engine, errand, gate):
    errand("e1")
    with Running(engine, registry_of(run=gate), grace=0.1) as worker:
        assert gate.begun.acquire(timeout=60)
    gate.let.set()
    eventually(lambda: not worker.in_flight.running(), "the late handler has ended")
    assert worker.summary() == "1 returned"
    assert (state(engine, "e1"), places(engine)) == ("doing", {"ready": 1})


def test_a_queue_that_cannot_be_taken_from_does_not_hold_up_the_others(engine):
    for name in ("broken", "sound"):
        engine.publish(builders.errand(name))
    engine.client.set(engine.keys.partition("broken").ready("errands"), "foreign")
    engine.create("sound", "e1")
    with Running(engine, registry_of(run=print)):
        eventually(lambda: engine.get("sound", "e1").state == "done", "the job of the sound machine is done")


def test_handlers_that_call_exit_leave_the_worker_as_it_was(engine, errand):
    def leaves(job):
        if job.instance.startswith("bad"):
            sys.exit(3)

    for number in range(3):
        errand(f"bad{number}")
    with Running(engine, registry_of(run=leaves), concurrency=2):
        errand("good")
        eventually(lambda: engine.get("errand", "good").state == "done", "the good job is done")


class Hanging(Engine):
    """From ``hang`` on no call that hands back is answered."""

    hang = False
    asked = 0

    def hand_back(self, job, **given):
        if not self.hang:
            return super().hand_back(job, **given)
        self.asked += 1
        raise errors.EngineUnavailable("no answer")


def test_stopped_while_redis_hangs_it_waits_for_one_call_and_not_for_each_job(engine, errand, gate):
    hanging = Hanging(engine.client, prefix=engine.keys.prefix)
    for number in range(3):
        errand(f"e{number}")
    with Running(hanging, registry_of(run=gate), grace=0.1, concurrency=3):
        for _ in range(3):
            assert gate.begun.acquire(timeout=60)
        hanging.hang = True
    assert (hanging.asked, places(engine)) == (1, {"leased": 3})
    gate.let.set()
