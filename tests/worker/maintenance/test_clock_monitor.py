"""A server's clock that is set is noticed by the worker's own, and leases do not suffer. Times are set, not slept."""

from __future__ import annotations

import pytest

from machines.engine.jobs.clock_jump import DAY_MS, ClockBounds, ClockJump
from machines.worker.duties.clock_monitor import ClockMonitor
from machines.worker.duties.due_work import LeaseRecovery
from tests.worker.builders import LEASE, START, places, take_one

HOUR = 3_600_000
ROOT = "sb:{errand:0}"
ONE, TWO = frozenset("ac"), frozenset("b")  # partitions of two servers


class Clock:
    """Seconds of the worker's monotonic clock."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def own():
    return Clock()


@pytest.fixture
def monitor(engine, own):
    return ClockMonitor(engine, "alice", clock=own)


def see(monitor, own, shown, *, root=ROOT, took=0.0):
    """One look: the server's clock shows so many ms, and its answer takes so many seconds."""
    asked, own.at = own.at, own.at + took
    return monitor.observe({frozenset([root]): shown}, asked)


@pytest.mark.parametrize("by", [HOUR, -HOUR, 5_000, -5_000])
def test_a_clock_that_is_set_is_noticed_once(engine, monitor, own, by):
    assert not see(monitor, own, START)
    own.at += 5
    assert see(monitor, own, START + 5_000 + by)
    (jump,) = engine.clock_jumps.read()
    assert (jump.server, jump.by, jump.worker, jump.undone) == ("", by, "alice", False)
    own.at += 5
    assert not see(monitor, own, START + 10_000 + by)
    assert monitor.jumps == 1
    assert monitor.bounds().since == START + 5_000 + by


@pytest.mark.parametrize("off", [0, 1_500, -1_500])
def test_a_clock_that_is_a_little_off_has_not_been_set(engine, monitor, own, off):
    see(monitor, own, START)
    own.at += 5
    assert not see(monitor, own, START + 5_000 + off)


def test_an_answer_that_takes_long_is_no_jump(monitor, own):
    see(monitor, own, START)
    assert not see(monitor, own, START + 20_000, took=20.0), "the server did it at the end"
    assert not see(monitor, own, START + 20_000, took=20.0), "the server did it at the beginning"
    assert not see(monitor, own, START + 40_000), "the answers that took long say nothing of the clock"


def test_a_clock_that_is_slewed_is_followed(monitor, own):
    shown = START
    for _ in range(100):
        own.at += 600
        shown += 600_000 + 300  # as much as NTP does
        assert not see(monitor, own, shown)


def test_each_server_of_a_cluster_is_compared_with_itself(engine, monitor, own, monkeypatch):
    monkeypatch.setattr(engine.wakeups, "find_server", {"a": "one:1", "b": "two:2"}.get)
    monitor.observe({ONE: START, TWO: START - 60_000}, own.at)
    own.at += 5
    assert monitor.observe({ONE: START + 5_000, TWO: START - 55_000 - HOUR}, own.at)
    assert [(jump.server, jump.by) for jump in engine.clock_jumps.read()] == [("two:2", -HOUR)]


def test_a_jump_that_leads_back_is_told_from_one_that_does_not(engine, monitor, own):
    see(monitor, own, START)
    see(monitor, own, START + HOUR)
    own.at += 600
    see(monitor, own, START + 600_000)
    (jump,) = engine.clock_jumps.read()
    assert (jump.by, jump.undone) == (-HOUR, True)


def test_a_second_worker_notices_the_same_jump_and_leaves_it_as_it_is(engine, monitor, own):
    other = ClockMonitor(engine, "bob", clock=own)
    for each in (monitor, other):
        see(each, own, START)
    own.at += 4
    see(monitor, own, START + 4_000 + HOUR)
    own.at += 1
    assert see(other, own, START + 5_000 + HOUR)
    (jump,) = engine.clock_jumps.read()
    assert jump.worker == "alice"


def test_a_worker_that_starts_later_knows_of_the_jump_until_it_is_over(engine, own):
    engine.clock_jumps.note(ClockJump("", START, START + HOUR, "alice"))
    late = ClockMonitor(engine, "bob", clock=own)
    see(late, own, START + HOUR + 60_000)
    assert late.bounds().since == START + HOUR
    own.at += 2 * DAY_MS / 1000
    see(late, own, START + HOUR + 60_000 + 2 * DAY_MS)
    assert (late.bounds().since, engine.clock_jumps.read()) == (None, [])


# Leases


@pytest.fixture
def leased(engine, errand):
    """A job that somebody has taken."""
    errand("e1")
    return take_one(engine)


def test_what_is_due_waits_where_the_clock_is_later_than_it_can_be(engine, leased):
    now = START + HOUR
    root = engine.keys.partition("errand").root
    assert engine.sweep("errand", clock=ClockBounds(latest=START + LEASE), now=now) == 0
    assert places(engine) == {"leased": 1}
    done = engine.drive_roots([root], look=True, clock=ClockBounds(latest=START))
    assert (done.moved, done.dues) == (0, {}), "the server's own clock is years ahead of that"
    assert places(engine) == {"leased": 1}
    assert engine.drive_roots([root], look=True).moved == 1, "nobody says so: it is taken back"


def test_an_hour_forward_gives_a_lease_its_whole_length_again_and_no_more(engine, leased):
    since = START + HOUR + 1_000
    clock = ClockBounds(since=since)
    assert engine.sweep("errand", clock=clock, now=since + 1) == 0
    assert places(engine) == {"leased": 1}
    (job,) = engine.jobs("errand", "errands", place="leased")
    assert job.lease_until == since + 1 + LEASE
    assert engine.sweep("errand", clock=clock, now=since + LEASE) == 0
    assert engine.sweep("errand", clock=clock, now=since + LEASE + 2) == 1, "nobody renewed it"


def test_an_hour_back_leaves_no_lease_hanging(engine, leased):
    since = START - HOUR
    assert engine.sweep("errand", clock=ClockBounds(since=since), now=since + 1) == 0
    (job,) = engine.jobs("errand", "errands", place="leased")
    assert job.lease_until == since + 1 + LEASE
    assert engine.sweep("errand", clock=ClockBounds(since=since), now=since + LEASE + 2) == 1


def test_a_lease_that_was_extended_keeps_its_own_length(engine, leased):
    """As one that was handed to the worker of another queue."""
    long = 12 * HOUR
    assert engine.extend(leased, long, now=START) == [True]
    back = START - HOUR
    engine.sweep("errand", clock=ClockBounds(since=back), now=back + 1)
    (job,) = engine.jobs("errand", "errands", place="leased")
    assert job.lease_until == back + 1 + long
    engine.sweep("errand", clock=ClockBounds(since=back), now=back + HOUR)
    assert engine.jobs("errand", "errands", place="leased")[0].lease_until == back + 1 + long, "it is left alone now"


def test_the_deadline_of_an_attempt_moves_with_its_lease(engine, errand):
    errand("e1")
    engine.fire("errand", "e1", "cancel", now=START)
    engine.enqueue("errand", "run", queue="errands", timeout=HOUR, now=START)
    job = take_one(engine)
    since = START + 2 * HOUR
    engine.sweep("errand", clock=ClockBounds(since=since), now=since)
    assert engine.extend(job, LEASE, now=since + 1) == [True]
    (job,) = engine.jobs("errand", "errands", place="leased")
    assert job.lease_until == since + 1 + LEASE, "the old deadline would have ended it at once"


def test_a_lease_from_after_the_jump_ends_as_any_other(engine, errand):
    since = START
    errand("e1")
    take_one(engine, now=since + 1)
    assert engine.sweep("errand", clock=ClockBounds(since=since), now=since + 1 + LEASE) == 1


def test_after_a_jump_all_partitions_are_swept_at_once(engine, monitor, own):
    for number in range(30):
        engine.publish({"id": f"m{number}", "initial": "a", "states": {"a": {}}})
    recovery = LeaseRecovery(engine, monitor=monitor)
    assert recovery.run_once() is False
    see(monitor, own, START)
    see(monitor, own, START + HOUR)
    assert [recovery.run_once() for _ in range(3)] == [True, False, False], "two passes of twenty"
