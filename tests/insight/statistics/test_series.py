"""What was measured, as lines: aligned, honest about what nobody measured, no more than can be told apart."""

from __future__ import annotations

import pytest

from machines.insight.statistics.series import recent_times, series
from machines.models import Measurement, SamplingTurn

from .conftest import START

HOUR = 3_600_000
NOW = START + 30_000  # ms: half a minute after a full minute
LAST = START // 1000

pytestmark = pytest.mark.django_db


def measured(
    at: int, *, machine: str = "m", period: int = 60, covered: int = 60_000, numbers=None, **sums: int
) -> None:
    Measurement.objects.create(
        machine=machine, period=period, at=at, covered=covered, numbers=numbers or {}, **sums
    )  # fmt: skip


def turn(began: int) -> None:
    SamplingTurn.objects.update_or_create(pk=1, defaults={"began": began, "at": NOW})


def lines(what: str, span: str = "hour", machines=("m",), queue: str = "") -> dict[str, list[float | None]]:
    return {line.name: line.values for line in series(machines, span, what, queue=queue, now=NOW).lines}


def test_before_any_measurement_there_is_nothing_to_see():
    found = series(["m"], now=NOW)
    assert (found.is_empty, found.measured, found.began, found.lines) == (True, 0, 0, [])


@pytest.mark.parametrize(
    ("span", "step", "steps"), [("hour", 60, 60), ("day", 900, 96), ("month", 21_600, 120)]
)  # fmt: skip
def test_an_axis_ends_with_the_step_that_runs_and_is_as_long_as_its_span(span, step, steps):
    turn(began=1)
    found = series(["m"], span, now=NOW)
    assert (found.step, len(found.at), found.at[-1] + step > NOW // 1000 >= found.at[-1]) == (step, steps, True)
    assert {b - a for a, b in zip(found.at, found.at[1:], strict=False)} == {step}
    assert all(at % step == 0 for at in found.at)


def test_rates_are_over_the_time_that_was_measured_and_none_where_nobody_did():
    turn(began=1)
    measured(LAST - 180, transitions=90)
    measured(LAST - 120, transitions=45, covered=30_000)
    measured(LAST, transitions=0, covered=20_000)
    measured(LAST, transitions=7, machine="other")
    assert lines("transitions")["m"][-4:] == [90, 90, None, 0]


def test_a_day_is_made_of_quarters_and_a_month_of_hours():
    turn(began=1)
    quarter = LAST - LAST % 900
    for minute in range(3):
        measured(quarter - 900 + minute * 60, transitions=10)
    measured(quarter - 900, period=3600, covered=HOUR, transitions=6_000)
    measured(quarter - 86_400, period=0, covered=HOUR, transitions=5)
    assert lines("transitions", "day")["m"][-2] == 10
    assert 100 in lines("transitions", "month")["m"]
    gap = series(["m"], "month", now=NOW).gaps[0]
    assert (gap.begin, gap.end, gap.transitions) == (quarter - 86_400, quarter - 86_400 + 3600, 5)


def test_the_machines_together_are_the_sum_of_their_rates():
    turn(began=1)
    measured(LAST, enqueued=60, completed=30, covered=30_000)
    measured(LAST, machine="n", enqueued=10, completed=10)
    found = lines("work", machines=("m", "n"))
    assert (found["enqueued"][-1], found["completed"][-1]) == (130, 70)
    assert found["enqueued"][-2] is None
    assert lines("work", machines=("n",))["enqueued"][-1] == 10  # no machine is told of that was not asked for


def test_of_many_lines_the_fullest_are_told_apart_and_the_others_added_up():
    turn(began=1)
    measured(LAST, numbers={"edges": {f"1:t{number}": number for number in range(1, 11)}})
    measured(LAST - 60, numbers={"edges": {"1:t1": 2}})
    found = lines("edges")
    assert list(found) == ["1:t10", "1:t9", "1:t8", "1:t7", "1:t6", "1:t5", "4 others"]
    assert (found["1:t10"][-2:], found["4 others"][-2:]) == ([0, 10], [2, 10])


def test_a_queues_throughput_and_times_are_its_own():
    turn(began=1)
    mine = {"enqueued": 4, "completed": 2, "failed": 1, "lost": 1, "waits": {"4": 10}, "runs": {"11": 1}}
    measured(LAST, numbers={"queues": {"work": mine, "other": {"enqueued": 50, "waits": {"20": 10}}}})
    found = lines("throughput", queue="work")
    assert {name: values[-1] for name, values in found.items()} == {"in": 4, "completed": 2, "failed": 2}
    times = lines("times", queue="work")
    # Ten waits of 8 to 16 ms count as evenly spread in it: half of them below 12, and 95 in 100 below 15.6.
    assert [times[f"wait {share}"][-1] for share in ("p50", "p95", "p99")] == [12, 15.6, 15.92]
    assert times["run p50"][-1] == 1536
    assert times["wait p50"][-2] is None
    assert lines("throughput")["in"][-1] == 54  # all queues of the machine


def test_the_times_of_the_last_hour_are_those_of_its_minutes():
    turn(began=1)
    measured(LAST - 7200, numbers={"queues": {"work": {"waits": {"1": 5}}}})
    measured(LAST - 600, numbers={"queues": {"work": {"waits": {"2": 3}}}})
    measured(LAST - 60, numbers={"queues": {"work": {"waits": {"2": 1, "5": 1}, "runs": {"3": 1}}}})
    assert recent_times(["m", "n"], now=NOW) == {"m": {"work": {"waits": {"2": 4, "5": 1}, "runs": {"3": 1}}}}
