"""Ages in two units at most, and never a crash on a time no calendar has."""

from __future__ import annotations

import pytest

from dashboard.templatetags.room import ago, figure, until, value
from machines.insight.statistics.ages import format_age
from tests.cases import for_each

NOW = 1_700_000_000_000


@for_each(
    "seconds, words",
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86400, "1 d"),
        (273_600, "3 d 4 h"),
        (864_000, "10 d"),
        (4_000_000, "46 d"),
    ],
)
def test_an_age_reads_in_two_units_at_most(seconds, words):
    assert format_age(seconds) == words


def test_an_age_carries_the_exact_time():
    shown = ago({"now_ms": NOW}, NOW - 200_000)
    assert ">3 min</time>" in shown
    assert 'title="2023-11-14 22:10:00 UTC"' in shown
    assert 'datetime="2023-11-14T22:10:00.000+00:00"' in shown


def test_a_time_to_come_counts_down_and_then_is_overdue():
    assert ">in 12 s<" in until({"now_ms": NOW}, NOW + 12_000)
    assert ">overdue 3 s<" in until({"now_ms": NOW}, NOW - 3_000)


@pytest.mark.parametrize("ms", [None, 0])
def test_no_time_is_a_dash(ms):
    assert ago({}, ms) == "–"


def test_a_time_no_calendar_has_does_not_break_the_page():
    assert "an unknown time" in ago({"now_ms": NOW}, 10**18)


def test_figures_are_grouped_and_values_keep_their_type():
    assert figure(1234567) == "1,234,567"
    assert [value(one) for one in ("3", 3, None, True, "ü")] == ['"3"', "3", "null", "true", '"ü"']
