"""Workers whose wall clock is wrong, or jumps: only the server's time and the monotonic clock count."""

import time

import pytest

from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, wait_for
from .shifted import DAY

pytestmark = pytest.mark.redis

CLOCKS = [str(-DAY), str(DAY), "jumping"]
JOBS = 40


def test_all_jobs_are_done_once_and_no_lease_is_lost(own_engine, workers):
    own_engine.publish(line("sleepy", "sleepy", lease=60_000))
    wrong = [workers.start(shift=clock, concurrency=4) for clock in CLOCKS]
    eventually(lambda: len(own_engine.workers()) == len(wrong), "all workers are there", LONG)
    begun = 0
    while begun < JOBS or not all(row.done for row in own_engine.workers()):  # a busy processor may start one late
        begin(own_engine, (f"i{number}" for number in range(begun, begun + JOBS)))
        begun += JOBS
        wait_for(own_engine, begun)
    assert all("completed" in worker.finish() for worker in wrong), "each of them has worked"
    found = audit(own_engine, "line")
    assert (found.states, found.places) == ({"done": begun}, {})
    stats = own_engine.stats("line")["jobs"]
    assert (stats.completed, stats.lost) == (2 * begun, 0)


@pytest.mark.parametrize("clock", CLOCKS)
def test_its_row_tells_the_time_of_the_server(own_engine, workers, clock):
    """Asked for again and again: listing clears away names that look forgotten, and must not take this one."""
    worker = workers.start(shift=clock)
    eventually(own_engine.workers, "the worker is there", LONG)
    for _ in range(3):
        (row,) = own_engine.workers()
        assert row.pid == worker.pid
        assert abs(row.seen / 1000 - time.time()) < 60
    worker.finish()
    assert own_engine.workers() == []


def test_a_delayed_attempt_comes_when_the_server_says_so(own_engine, workers):
    own_engine.publish(line("fragile", backoff=200, attempts=2))
    workers.start(shift=str(-DAY))
    begin(own_engine, ["a"])
    wait_for(own_engine, 1)
    audit(own_engine, "line")
