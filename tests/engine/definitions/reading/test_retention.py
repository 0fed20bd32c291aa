"""``retain`` of a definition: what it bounds, and what stands in for a bound it does not have."""

from __future__ import annotations

from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.reading.machine_settings import Retention, find_retention
from tests.cases import for_each

DAY = 86_400_000


@for_each(
    "text, ms",
    [
        ("30d", 30 * DAY),
        ("30 days", 30 * DAY),
        ("1 day", DAY),
        ("12 hours", DAY // 2),
        ("90m", 5_400_000),
        ("2 minutes", 120_000),
        ("1.5 s", 1500),
        ("500ms", 500),
        (" 3 seconds ", 3000),
    ],
)
def test_an_age_is_a_duration_or_has_its_unit_in_full(text, ms):
    assert parse_duration(text) == ms


@for_each("text", ["", "30", "days", "-1d", "30 month", "1d 2h"])
def test_any_other_text_is_no_age(text):
    assert parse_duration(text) is None


def test_a_text_is_the_age_of_finished_instances():
    assert find_retention({"retain": "30 days"}) == Retention(finished=30 * DAY)
    assert find_retention({}) == Retention()
    assert not find_retention({})


def test_an_object_has_a_bound_for_each_kind():
    given = {"finished": "30d", "most": 5, "archive": False, "dead": "90d", "log": "7d"}
    assert find_retention({"retain": given}) == Retention(30 * DAY, 5, False, 90 * DAY, 7 * DAY)


def test_a_bound_of_its_own_goes_before_the_default():
    own, default = Retention(finished=0, archive=False), Retention(finished=DAY, most=7, dead=DAY)
    assert own.fill_from(default) == Retention(finished=0, most=7, archive=False, dead=DAY)
