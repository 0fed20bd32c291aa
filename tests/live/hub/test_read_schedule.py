from __future__ import annotations

from dashboard.live.hub.read_schedule import ReadSchedule

SETTLE = 0.055


def test_a_ring_is_read_after_the_pulse_and_not_before() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 10.0)
    assert agenda.next() == 10.0 + SETTLE
    assert agenda.take(10.0 + SETTLE - 0.001) == set()
    assert agenda.take(10.0 + SETTLE) == {"a"}
    assert agenda.next() is None


def test_a_ring_during_the_wait_asks_for_another_read_after_its_own_pulse() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 10.0)
    agenda.ring("a", 10.05)
    assert agenda.take(10.055) == {"a"}
    assert agenda.next() == 10.05 + SETTLE
    assert agenda.take(10.05 + SETTLE) == {"a"}
    assert agenda.next() is None


def test_a_late_read_serves_all_rings_whose_pulse_is_over() -> None:
    agenda = ReadSchedule(SETTLE)
    for at in (10.0, 10.05, 10.1):
        agenda.ring("a", at)
    agenda.ring("b", 10.3)
    assert agenda.take(10.2) == {"a"}
    assert agenda.take(11.0) == {"b"}
    assert agenda.next() is None


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


def test_clearing_forgets_everything() -> None:
    agenda = ReadSchedule(SETTLE)
    agenda.ring("a", 1.0)
    agenda.clear()
    assert agenda.next() is None
