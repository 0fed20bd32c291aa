from __future__ import annotations

from dashboard.live.sockets.admission import CommandRateLimit


def test_a_bucket_empties_and_refills_with_time() -> None:
    now = [100.0]
    budget = CommandRateLimit(5, 2.0, clock=lambda: now[0])
    assert [budget.spend(1) for _ in range(6)] == [True] * 5 + [False]
    now[0] += 1.0
    assert [budget.spend(1) for _ in range(3)] == [True, True, False]


def test_it_never_holds_more_than_at_first() -> None:
    now = [0.0]
    budget = CommandRateLimit(3, 1.0, clock=lambda: now[0])
    now[0] = 1000.0
    assert [budget.spend(1) for _ in range(4)] == [True] * 3 + [False]


def test_a_cost_above_what_is_left_empties_it() -> None:
    budget = CommandRateLimit(5, 1.0, clock=lambda: 0.0)
    assert not budget.spend(10)
    assert not budget.spend(1)
