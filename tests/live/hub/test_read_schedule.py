from __future__ import annotations

from dashboard.live.hub.hub import ReadSchedule

SETTLE = 0.055


def test_a_ring_is_read_at_once_and_again_when_its_silent_steps_are_over() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 10.0)
    assert agenda.next() == 10.0
    assert agenda.take(10.0) == {"a"}
    assert agenda.next() == 10.0 + SETTLE
    assert agenda.take(10.0 + SETTLE - 0.001) == set()
    assert agenda.take(10.0 + SETTLE) == {"a"}
    assert agenda.next() is None


def test_a_later_ring_takes_the_place_of_the_second_read() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 10.0)
    assert agenda.take(10.0) == {"a"}
    agenda.ring("a", 10.05)
    assert agenda.take(10.05) == {"a"}
    assert agenda.next() == 10.05 + SETTLE
    assert agenda.take(10.05 + SETTLE) == {"a"}
    assert agenda.next() is None


def test_a_read_that_comes_late_is_followed_by_another_only_while_steps_may_be_silent() -> None:
    agenda = ReadSchedule(SETTLE)
    for at in (10.0, 10.05, 10.1):
        agenda.ring("a", at)
    agenda.ring("b", 10.3)
    assert agenda.take(10.2) == {"a"}
    assert agenda.take(10.31) == {"b"}
    assert agenda.next() == 10.3 + SETTLE
    assert agenda.take(11.0) == {"b"}
    assert agenda.next() is None


def test_a_read_that_is_due_stays_due_when_it_rings_again() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 10.0)
    agenda.ring("a", 10.05)
    assert agenda.next() == 10.0


def test_a_steady_stream_is_read_all_the_time_and_once_more_at_its_end() -> None:
    agenda, reads, now = ReadSchedule(SETTLE), [], 0.0
    for tick in range(1000):
        now = tick / 1000
        if tick % 50 == 0:
            agenda.ring("a", now)
            last = now
        if agenda.take(now):
            reads.append(now)
    while agenda.next() is not None:
        now = agenda.next()
        agenda.take(now)
        reads.append(now)
    assert 18 <= len(reads) <= 21
    assert reads[-1] >= last + SETTLE
    assert all(any(0 <= read - rung < 0.001 for read in reads) for rung in (0.0, 0.5, last))


def test_clearing_forgets_everything() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 1.0)
    agenda.clear()
    assert agenda.next() is None
