from __future__ import annotations

from dashboard.live.hub.hub import ReadSchedule

SETTLE = 0.055


def test_a_ring_is_read_at_once_and_again_when_its_silent_steps_are_over() -> None:
    schedule = ReadSchedule(SETTLE)
    schedule.ring("a", 10.0)
    assert schedule.next() == 10.0
    assert schedule.take(10.0) == {"a"}
    assert schedule.next() == 10.0 + SETTLE
    assert schedule.take(10.0 + SETTLE - 0.001) == set()
    assert schedule.take(10.0 + SETTLE) == {"a"}
    assert schedule.next() is None


def test_a_later_ring_takes_the_place_of_the_second_read() -> None:
    schedule = ReadSchedule(SETTLE)
    schedule.ring("a", 10.0)
    assert schedule.take(10.0) == {"a"}
    schedule.ring("a", 10.05)
    assert schedule.take(10.05) == {"a"}
    assert schedule.next() == 10.05 + SETTLE
    assert schedule.take(10.05 + SETTLE) == {"a"}
    assert schedule.next() is None


def test_a_read_that_comes_late_is_followed_by_another_only_while_steps_may_be_silent() -> None:
    schedule = ReadSchedule(SETTLE)
    for at in (10.0, 10.05, 10.1):
        schedule.ring("a", at)
    schedule.ring("b", 10.3)
    assert schedule.take(10.2) == {"a"}
    assert schedule.take(10.31) == {"b"}
    assert schedule.next() == 10.3 + SETTLE
    assert schedule.take(11.0) == {"b"}
    assert schedule.next() is None


def test_a_read_that_is_due_stays_due_when_it_rings_again() -> None:
    schedule = ReadSchedule(SETTLE)
    schedule.ring("a", 10.0)
    schedule.ring("a", 10.05)
    assert schedule.next() == 10.0


def test_a_steady_stream_is_read_all_the_time_and_once_more_at_its_end() -> None:
    schedule, reads, now = ReadSchedule(SETTLE), [], 0.0
    for tick in range(1000):
        now = tick / 1000
        if tick % 50 == 0:
            schedule.ring("a", now)
            last = now
        if schedule.take(now):
            reads.append(now)
    while schedule.next() is not None:
        now = schedule.next()
        schedule.take(now)
        reads.append(now)
    assert 18 <= len(reads) <= 21
    assert reads[-1] >= last + SETTLE
    assert all(any(0 <= read - rung < 0.001 for read in reads) for rung in (0.0, 0.5, last))


def test_clearing_forgets_everything() -> None:
    schedule = ReadSchedule(SETTLE)
    schedule.ring("a", 1.0)
    schedule.clear()
    assert schedule.next() is None
