"""The scoreboards of a machine: what was measured of the day, and where instances have stood longest."""

import pytest

from machines.catalog import publishing
from machines.engine import Engine
from machines.models import Measurement
from machines.patterns import Place
from machines.statistics.scoreboards import UNHEARD, ScoreboardUpdate, board, busiest, slowest

from .conftest import LAMP

HOUR, DAY = 3_600_000, 86_400_000
NOW = 1_800_000_000_000
TODAY = NOW - NOW % DAY


@pytest.fixture
def lamps(redis_url, prefix, transactional_db):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=2)
    engine.publish(LAMP)
    publishing.adopt("lamp")
    yield engine
    engine.client.close()


def measured(at: int, edges: dict[str, int], refused: dict[str, int] | None = None) -> None:
    numbers = {"edges": edges} | ({"refused": refused} if refused else {})
    Measurement.objects.create(machine="lamp", period=3600, at=at // 1000, numbers=numbers)


def fill(engine: Engine, now: int = NOW) -> bool:
    return ScoreboardUpdate(engine).fill("lamp", 1, now=now)


def test_edges_and_events_are_ranked_by_what_was_measured_of_the_day(lamps):
    measured(TODAY, {"1:off.press": 5, "1:on.press": 3}, {"smash": 2, "": 7})
    measured(TODAY + HOUR, {"1:on.press": 4, "1:on.smash": 1})
    measured(TODAY - HOUR, {"1:off.press": 90})
    assert fill(lamps)
    assert [(p.rank, p.member, p.score) for p in busiest("lamp", "edges", 5, at=NOW)] == [
        (1, "1:on.press", 7.0), (2, "1:off.press", 5.0), (3, "1:on.smash", 1.0),
    ]  # fmt: skip
    assert [(p.member, p.score) for p in busiest("lamp", "refused", 1, at=NOW)] == [(UNHEARD, 7.0)]
    assert busiest("lamp", "edges", 5, at=NOW + DAY) == []


def test_again_changes_nothing_and_a_week_is_the_sum_of_its_days(lamps):
    for ago in range(9):
        measured(TODAY - ago * DAY, {"1:off.press": 1})
        fill(lamps, NOW - ago * DAY)
    fill(lamps)
    assert [place.score for place in busiest("lamp", "edges", 5, days=7, at=NOW)] == [7.0]


def test_after_midnight_the_last_minutes_of_yesterday_still_count_for_yesterday(lamps):
    measured(TODAY - HOUR, {"1:off.press": 2})
    assert fill(lamps, TODAY + 60_000)
    assert [place.score for place in busiest("lamp", "edges", 5, at=TODAY - 1)] == [2.0]
    assert busiest("lamp", "edges", 5, at=TODAY) == []
    Measurement.objects.update(numbers={"edges": {"1:off.press": 3}})
    assert not fill(lamps, TODAY + 600_000)
    assert [place.score for place in busiest("lamp", "edges", 5, at=TODAY - 1)] == [2.0]


def test_a_state_is_as_slow_as_the_instance_in_its_middle_and_final_ones_are_left_out(lamps):
    for i, minutes in enumerate([1, 2, 30, 31, 32, 33, 90]):
        lamps.create("lamp", f"l{i}", now=NOW - minutes * 60_000)
    lamps.fire("lamp", "l0", "press", now=NOW - 30_000)
    assert not fill(lamps)  # nothing was measured yet
    off, on = slowest("lamp", 5, at=NOW)
    assert (off.member, on) == ("off", Place(2, "on", 30_000.0, False))
    assert 30 * 60_000 <= off.score <= 32 * 60_000  # of two partitions that of the middle by weight
    lamps.fire("lamp", "l0", "smash", now=NOW)
    fill(lamps, NOW + 1000)
    assert [place.member for place in slowest("lamp", 5, at=NOW + 1000)] == ["off"]


def test_one_pass_of_the_duty_takes_every_machine_and_none_that_fails_stops_it(lamps, prefix):
    lamps.publish(LAMP | {"id": "torch"})
    lamps.create("torch", "one")
    publishing.adopt("torch")
    lamps.client.set(f"{prefix}{{lamp:0}}:in:off", "something foreign")
    duty = ScoreboardUpdate(lamps)
    assert duty.once() is False
    assert duty.pause() < 20  # nothing was measured yet: it looks again soon
    assert [place.member for place in slowest("torch", 5)] == ["off"]
    for key in lamps.client.scan_iter(f"{prefix}*:board:*"):
        assert lamps.client.pttl(key) > 0
    assert board("torch", "edges").top() == []
