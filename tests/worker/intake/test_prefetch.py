"""Taking ahead of what runs."""

from __future__ import annotations

import threading

import pytest

from machines.engine import Engine
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.intake.poll_loop import AHEAD, AHEAD_OF_GROUPS, MOST_AHEAD, MOST_OF_GROUPS, PACE_WINDOW, Prefetch
from machines.worker.job import Job
from machines.worker.options import Options
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import Running, places, registry_of


def test_as_many_are_taken_ahead_as_end_in_a_blink():
    now = [0.0]
    pace = Prefetch(None, clock=lambda: now[0])
    assert pace.ahead(0) == 0
    now[0] += 1
    assert pace.ahead(2000) == 2000 * AHEAD
    assert pace.ahead(2000, has_groups=True) == 2000 * AHEAD_OF_GROUPS
    now[0] += PACE_WINDOW / 2
    assert pace.ahead(2001) == 2000 * AHEAD
    now[0] += 1
    assert pace.ahead(2002) == 0
    now[0] += 1
    assert pace.ahead(10**6) == MOST_AHEAD


def test_or_as_many_as_was_said():
    assert Prefetch(7).ahead(10**6) == 7


@pytest.mark.parametrize("prefetch", [-1, 1001])
def test_a_number_that_is_none_is_refused(prefetch):
    with pytest.raises(ValueError, match="prefetch must be 0 to 1000"):
        Options(prefetch=prefetch)


@pytest.mark.parametrize(("ahead", "open", "room"), [(0, 3, 1), (10, 4, 10), (10, 10, 4), (1, 4, 1)])
def test_room_is_asked_for_when_half_of_what_was_taken_ahead_is_left(engine, errand, ahead, open, room):
    in_flight = InFlightJobs(4)
    jobs = _taken(engine, errand, open)
    in_flight.pick_up(jobs)
    if ahead == 10 and open == 10:
        threading.Timer(0.05, lambda: [in_flight.release(job) for job in jobs[:1]]).start()
        assert in_flight.wait_room(ahead, 10) == room + 1
    else:
        assert in_flight.wait_room(ahead, 0) == room


def _taken(engine, errand, count):
    for number in range(count):
        errand(f"e{number}")
    return [Job(taken) for taken in engine.take("errand", "errands", "alice", count=count)]


def test_what_is_taken_ahead_is_renewed_and_goes_back_at_a_stop(engine):
    let, begun = threading.Event(), threading.Event()

    def handler(job):
        begun.set()
        assert let.wait(60)

    engine.publish(builders.errand(lease="300ms"))
    for number in range(6):
        engine.create("errand", f"e{number}")
    with Running(engine, registry_of(run=handler), concurrency=1, prefetch=3) as worker:
        assert begun.wait(60)
        eventually(lambda: places(engine) == {"ready": 2, "leased": 4}, "three are taken ahead")
        until = [job.lease_until for job in engine.jobs("errand", "errands", place="leased")]
        eventually(
            lambda: min(j.lease_until for j in engine.jobs("errand", "errands", place="leased")) > max(until),
            "all leases were renewed",
        )
        worker.stop()
        eventually(lambda: places(engine) == {"ready": 5, "leased": 1}, "they go back while the one at work goes on")
        let.set()
    assert engine.counts("errand")["done"] == 1
    assert {job.attempt for job in engine.jobs("errand", "errands")} == {0}


def test_a_slow_job_holds_up_one_thread_and_nothing_that_was_taken_with_it(engine):
    let = threading.Event()
    engine.publish(builders.errand())
    for number in range(30):
        engine.create("errand", f"e{number}")

    def handler(job):
        if job.instance == "e3":
            assert let.wait(60)

    with Running(engine, registry_of(run=handler), concurrency=2, prefetch=20):
        eventually(lambda: engine.counts("errand")["done"] == 29, "all the others are done")
        let.set()


def test_jobs_taken_ahead_of_slow_ones_go_back_after_a_while(engine):
    """At the pace of tiny jobs many are taken; when they turn out slow, other workers may have time for them sooner."""
    let, slow = threading.Event(), threading.Event()

    def handler(job):
        if slow.is_set():
            assert let.wait(60)
        elif job.instance == "e199":
            slow.set()

    engine.publish(builders.errand())
    for number in range(600):
        engine.create("errand", f"e{number}")
    with Running(engine, registry_of(run=handler), concurrency=1):
        eventually(lambda: places(engine).get("leased") == 1, "all but the one at work have gone back")
        let.set()
        eventually(lambda: engine.counts("errand")["done"] == 600, "all are done")


@pytest.mark.parametrize("group", [None, "flood"])
def test_of_jobs_with_groups_few_are_taken_in_one_call(engine, monkeypatch, group):
    asked, take = [], Engine.take

    def note_count(self, *args, **options):
        asked.append(options["count"])
        return take(self, *args, **options)

    monkeypatch.setattr(Engine, "take", note_count)
    engine.publish(builders.errand())
    engine.enqueue_many([{"machine": "errand", "src": "run", "queue": "errands", "group": group} for _ in range(400)])
    with Running(engine, registry_of(run=lambda job: None), concurrency=1, prefetch=100):
        eventually(lambda: not any(places(engine).values()), "all are done")
    assert (max(asked[1:]) <= MOST_OF_GROUPS) == (group is not None)


def test_one_worker_does_the_jobs_of_one_priority_in_their_order(engine):
    done = []
    engine.publish(builders.errand())
    for number in range(300):
        engine.enqueue("errand", "run", number, queue="errands", priority=9 if number == 299 else 5)
    builders.drain(engine, registry_of(run=lambda job: done.append(job.payload)), concurrency=1)
    assert done[0] == 299
    assert done[1:] == list(range(299))


def test_many_coroutines_run_at_a_time_without_a_thread_for_each(engine):
    import asyncio

    together, most = [0], [0]

    async def handler(job):
        together[0] += 1
        most[0] = max(most[0], together[0])
        await asyncio.sleep(0.05)
        together[0] -= 1

    engine.publish(builders.errand())
    for number in range(60):
        engine.create("errand", f"e{number}")
    before = threading.active_count()
    with Running(engine, registry_of(run=handler), concurrency=30, prefetch=0):
        eventually(lambda: engine.counts("errand")["done"] == 60, "all are done")
        assert threading.active_count() - before <= 30 + 10
    assert 10 < most[0] <= 30
