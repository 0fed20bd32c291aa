"""Telling Redis how jobs ended."""

from __future__ import annotations

import threading

import pytest

from machines.engine import Engine, errors
from machines.worker.execution.completer import Completer, Counters, ProgressReporter
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.failure import list_bases
from machines.worker.job import Job
from tests.installation.processes import eventually
from tests.worker.builders import START, places


class Faltering(Engine):
    """Redis does what it is asked, and the first ``silent`` answers are lost."""

    silent = 0
    calls = 0

    def complete_many(self, ends, *, now=None):
        ends = list(ends)
        self.calls += 1
        self.largest = max(getattr(self, "largest", 0), len(ends))
        return self._answer(super().complete_many(ends, now=now))

    def fail(self, job, error, **given):
        return self._answer(super().fail(job, error, **given))

    def hand_back(self, job, **given):
        return self._answer(super().hand_back(job, **given))

    def _answer(self, answer):
        if self.silent:
            self.silent -= 1
            raise errors.EngineUnavailable("the answer was lost")
        return answer


@pytest.fixture
def faltering(engine):
    return Faltering(engine.client, prefix=engine.keys.prefix)


@pytest.fixture
def in_flight():
    return InFlightJobs(100)


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def completer(faltering, in_flight, counters):
    completer = Completer(faltering, in_flight, counters, ProgressReporter(faltering), backoff=0.05)
    yield completer
    completer.stop(5)


@pytest.fixture
def jobs(engine, errand, in_flight):
    for number in range(50):
        errand(f"e{number}")
    jobs = [Job(taken) for taken in engine.take("errand", "errands", "alice", count=50, now=START)]
    in_flight.pick_up(jobs)
    return jobs


def test_what_ends_together_is_told_together(engine, faltering, completer, in_flight, counters, jobs):
    for job in jobs:
        completer.complete(job, job.instance)
    completer.start()
    assert in_flight.wait_empty(10)
    assert (counters.done, places(engine)) == (50, {})
    assert faltering.largest > 10
    assert engine.get("errand", "e7").data["answer"] == "e7"


def test_a_completion_whose_answer_was_lost_counts_as_one_and_moves_the_instance_once(
    engine, faltering, completer, in_flight, counters, jobs
):
    faltering.silent = 2
    for job in jobs:
        completer.complete(job, "once")
    completer.start()
    assert in_flight.wait_empty(10)
    assert str(counters) == "50 completed"
    assert engine.get("errand", "e1").revision == 2


def test_a_heartbeat_that_finds_such_a_job_gone_does_not_make_it_lost(
    engine, faltering, completer, in_flight, counters, jobs
):
    faltering.silent = 1
    jobs[0].asked = True
    jobs[0].abandon("gone")
    completer.complete(jobs[0], None)
    completer.start()
    eventually(lambda: counters.outcomes["completed"] == 1, "it was completed")


def test_a_job_another_has_is_lost(engine, completer, in_flight, counters, jobs):
    engine.hand_back(jobs[0].taken, now=START)
    completer.complete(jobs[0], None)
    completer.start()
    eventually(lambda: counters.outcomes["lost"] == 1, "it is lost")
    assert jobs[0].lost


def test_one_that_the_machine_refuses_fails_and_the_others_do_not(engine, completer, in_flight, counters, jobs):
    for job in jobs[:10]:
        completer.complete(job, {1, 2} if job is jobs[4] else "fine")
    completer.start()
    eventually(lambda: (counters.done, counters.failed) == (9, 1), "nine are done and one has failed")
    (failed,) = engine.jobs("errand", "errands", place="delayed")
    assert failed.id == jobs[4].id


class Broken(dict):
    """A result that cannot be read."""

    def items(self):
        raise RuntimeError("no items today")


def test_a_result_that_cannot_be_read_costs_no_other_job_of_its_batch(engine, completer, counters, jobs):
    for job in jobs[:10]:
        completer.complete(job, Broken(n=1) if job is jobs[4] else "fine")
    completer.start()
    eventually(lambda: (counters.done, counters.failed) == (9, 1), "nine are done and one has failed")
    (failed,) = engine.jobs("errand", "errands", place="delayed")
    assert failed.id == jobs[4].id


def test_a_failure_that_comes_too_late_is_no_failure(engine, completer, counters, jobs):
    engine.hand_back(jobs[3].taken, now=START)
    for job in (jobs[2], jobs[3]):
        completer.fail(job, ValueError("no"))
    completer.start()
    eventually(lambda: (counters.failed, counters.outcomes["lost"]) == (1, 1), "one has failed and one was another's")


def test_while_redis_is_away_what_ends_is_kept(engine, jobs, in_flight, counters):
    class Away(Engine):
        there = threading.Event()

        def complete_many(self, ends, *, now=None):
            if not self.there.is_set():
                raise errors.EngineUnavailable("away")
            return super().complete_many(ends, now=now)

    away = Away(engine.client, prefix=engine.keys.prefix)
    completer = Completer(away, in_flight, counters, ProgressReporter(away), backoff=0.02)
    completer.start()
    for job in jobs:
        completer.complete(job, "kept")
    assert not in_flight.wait_empty(0.2)
    away.there.set()
    assert in_flight.wait_empty(10)
    assert str(counters) == "50 completed"
    completer.stop(5)


def test_stopped_while_redis_is_away_it_gives_up(engine, jobs, in_flight, counters):
    class Gone(Engine):
        def complete_many(self, ends, *, now=None):
            raise errors.EngineUnavailable("away")

    gone = Gone(engine.client, prefix=engine.keys.prefix)
    completer = Completer(gone, in_flight, counters, ProgressReporter(gone), backoff=0.02)
    completer.start()
    for job in jobs:
        completer.complete(job, None)
    completer.stop(10)
    assert str(counters) == "50 lost"


def test_the_kinds_of_an_exception_are_the_names_of_its_bases():
    class Odd(KeyError, ValueError):
        pass

    assert list_bases(Odd()) == ["KeyError", "LookupError", "ValueError"]
    assert list_bases(Exception()) == []


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("it has no words")


def test_an_exception_that_cannot_say_what_it_is_fails_its_attempt(engine, completer, in_flight, counters, jobs):
    completer.fail(jobs[0], Mute())
    completer.start()
    eventually(lambda: counters.failed == 1, "it failed")
    (found,) = engine.jobs("errand", "errands", place="delayed")
    assert (found.id, found.kind) == (jobs[0].id, "Mute")
    assert found.error == "Mute, whose text cannot be had: RuntimeError"


def test_of_a_traceback_too_long_both_ends_are_kept(engine, completer, in_flight, counters, jobs):
    try:
        raise ValueError("x" * 100_000 + " the end")
    except ValueError as error:
        completer.fail(jobs[0], error)
    completer.start()
    eventually(lambda: counters.failed == 1, "it failed")
    (found,) = engine.jobs("errand", "errands", place="delayed")
    assert found.trace.startswith("Traceback")
    assert found.trace.rstrip().endswith("the end")
    assert "\n...\n" in found.trace
