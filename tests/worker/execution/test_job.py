"""What a handler is given."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from machines.engine import errors
from machines.worker import Job, Timeout
from machines.worker.execution.completer import PAUSE, ProgressReporter
from tests.installation.processes import eventually
from tests.worker.builders import Running, drain, registry_of


@pytest.fixture
def taken(engine, errand):
    """Puts a job for nobody on a queue and takes it."""
    errand("e1")

    def taken(input=None, **given):
        engine.enqueue("errand", "run", input, queue="bare", **given)
        (job,) = engine.take("errand", "bare", "alice")
        return job

    return taken


def test_it_says_what_is_asked_for(taken):
    job = Job(taken({"to": "Mrs Hill"}))
    assert (job.payload, job.input, job.data, job.instance) == ({"to": "Mrs Hill"}, {"to": "Mrs Hill"}, {}, "")
    assert (job.src, job.queue, job.attempt, job.attempts) == ("run", "bare", 1, 3)
    assert job.key == f"errand:{job.id}"
    assert job.key in job.actor


def test_without_a_timeout_it_has_no_deadline(taken):
    job = Job(taken())
    assert (job.deadline, job.remaining, job.cancelled) == (None, None, False)
    job.check()


def test_its_deadline_is_the_servers_and_what_remains_is_counted_here(taken, engine):
    given = taken(timeout=60_000)
    job = Job(given)
    assert job.deadline == given.taken + 60_000
    assert 0 < job.remaining <= 60
    assert not job.cancelled


def test_past_its_deadline_it_is_cancelled_and_says_so(taken):
    job = Job(taken(timeout=1_500), began=time.monotonic() - 2)
    assert (job.remaining, job.cancelled, job.lost) == (0, True, False)
    with pytest.raises(Timeout, match=r"not done after 1\.5 s"):
        job.check()
    with pytest.raises(Timeout):
        job.wait(30)


def test_a_wait_ends_at_the_deadline(taken):
    with pytest.raises(Timeout):
        Job(taken(timeout=50)).wait(30)


def test_a_lost_job_says_why_and_only_the_first_reason_counts(taken):
    job = Job(taken())
    called = []
    job.on_loss(lambda: called.append("before"))
    job.abandon("withdrawn")
    job.abandon("gone")
    job.on_loss(lambda: called.append("after"))
    assert (job.lost, job.cancelled, called) == (True, True, ["before", "after"])
    with pytest.raises(errors.LeaseLost) as caught:
        job.check()
    assert caught.value.why == "withdrawn"


def test_only_the_first_to_end_it_is_heard(taken):
    job = Job(taken())
    assert [job.end(), job.end(), job.ended] == [True, False, True]


@pytest.mark.parametrize("colour", ["plain", "async"])
def test_progress_is_seen_while_the_handler_works(engine, errand, colour):
    let = threading.Event()

    def plain(job):
        for done in range(1001):
            job.progress(done, 1000, "sorting")
        assert let.wait(60)

    async def coroutine(job):
        job.progress(1000, 1000, "sorting")
        while not let.is_set():  # noqa: ASYNC110  another thread sets it
            await asyncio.sleep(0.01)

    errand("e1")
    with Running(engine, registry_of(run=plain if colour == "plain" else coroutine)):
        eventually(lambda: _progress(engine, "leased") == (1000, 1000, "sorting"), "the last word is seen")
        let.set()


def _progress(engine, place):
    for job in engine.jobs("errand", "errands", place=place):
        if job.progress:
            return job.progress["done"], job.progress["total"], job.progress["note"]
    return None


def test_the_last_word_is_kept_with_an_attempt_that_fails(engine, errand):
    def handler(job):
        job.progress(1, 3)
        job.progress(2, 3, "the bell does not work")
        raise RuntimeError("nobody opened")

    errand("e1")
    with Running(engine, registry_of(run=handler)):
        kept = (2, 3, "the bell does not work")
        # On a busy machine the second attempt may have failed, too.
        eventually(lambda: kept in (_progress(engine, "delayed"), _progress(engine, "dead")), "it stands there")


def test_a_handler_that_says_much_sends_little(engine, taken):
    progress_reporter = ProgressReporter(engine)
    job = Job(taken(), progress_reporter=progress_reporter)
    before = _calls(engine)
    for done in range(5000):
        job.progress(done)
    eventually(lambda: (engine.job("errand", job.id).progress or {}).get("done") == 4999, "the last word is there")
    progress_reporter.stop()
    assert _calls(engine) - before < 5000 / 10
    assert PAUSE > 0


def _calls(engine):
    return engine.client.info("commandstats").get("cmdstat_fcall", {"calls": 0})["calls"]


@pytest.mark.parametrize(("done", "total", "note"), [(-1, None, ""), ("1", None, ""), (1, "2", ""), (1, 2, "x" * 201)])
def test_what_is_no_progress_is_told_to_the_handler(engine, taken, done, total, note):
    with pytest.raises(errors.BadInput):
        Job(taken(), progress_reporter=ProgressReporter(engine)).progress(done, total, note)


def test_a_handler_whose_job_is_gone_learns_so_when_it_reports(engine, taken):
    job = Job(taken(), progress_reporter=ProgressReporter(engine))
    job.abandon("withdrawn")
    with pytest.raises(errors.LeaseLost):
        job.progress(1)


def test_the_worker_tells_a_handler_why_its_job_is_gone(engine, errand):
    begun, told = threading.Event(), []

    def handler(job):
        begun.set()
        try:
            job.wait(20)
        except errors.LeaseLost as error:
            told.append(error.why)
            raise

    errand("e1")
    with Running(engine, registry_of(run=handler)) as worker:
        assert begun.wait(60)
        engine.fire("errand", "e1", "cancel")
        eventually(lambda: "1 lost" in worker.summary(), "it was told")
    assert told == ["withdrawn"]


def test_bare_jobs_are_done_like_any_other(engine, taken):
    done = []
    engine.enqueue_many([{"machine": "errand", "src": "run", "queue": "run", "input": n} for n in range(20)])
    worker = drain(engine, registry_of(run=lambda job: done.append(job.payload)), concurrency=1)
    assert [n for n in done if n is not None] == list(range(20))
    assert "21 completed" in worker.summary()
