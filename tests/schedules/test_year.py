"""A year in Zurich, in virtual time on a real server: two changes of the clock, outages, and workers that die."""

from __future__ import annotations

from datetime import datetime
from itertools import cycle
from zoneinfo import ZoneInfo

import pytest

from machines.schedules import Schedule, read

from .clock import DAY, HOUR, MINUTE, WHAT

ZONE = ZoneInfo("Europe/Zurich")
DAILY = {
    "name": "daily", "when": {"cron": "30 2 * * *"}, "zone": ZONE.key, "jitter": "10m", "catch_up": "all",
    "what": {"do": "fire", "machine": "report", "instance": "r-1", "event": "remind"},
}  # fmt: skip
TWICE = {"name": "twice", "when": {"cron": "15 */12 * * MON,THU"}, "zone": ZONE.key, "catch_up": "none", "what": WHAT}
OUTAGES = (("2027-03-27T20:00", 3 * DAY), ("2027-07-01T00:00", 10 * DAY), ("2027-10-31T02:20", 2 * HOUR))


def at(text: str) -> int:
    """Ms of a time in Zurich."""
    return int(datetime.fromisoformat(f"{text}:00").replace(tzinfo=ZONE).timestamp()) * 1000


def list_between(schedule: Schedule, start: int, end: int) -> list[int]:
    """The planned times of a schedule from one ms to another."""
    found = []
    for planned in schedule.iterate(start // 1000):
        if planned * 1000 >= end:
            return found
        found.append(planned)
    return found


@pytest.mark.hostile
def test_each_occurrence_of_a_year_takes_effect_once(clock):
    engine, begin, end = clock.engine, at("2027-01-01T00:00"), at("2028-01-01T00:00")
    clock.now = begin
    engine.create("report", "r-1", now=begin)
    for given in (DAILY, TWICE):
        clock.schedules.put(given)
    clock.deaths = cycle(["", "", "begin", "", "", "claim", "", "effect", "", "", ""])
    for start, length in OUTAGES:
        clock.run_until(at(start))
        clock.now += length  # no worker lives
    clock.run_until(end)
    assert min(clock.died[death] for death in ("begin", "claim", "effect")) > 25, clock.died

    daily, twice = read(DAILY), read(TWICE)
    expected = list_between(daily, begin, end)
    assert len(expected) == 365
    reasons = [step.reason for step in engine.history("report", "r-1", limit=1000) if step.event == "remind"]
    assert [text.partition("planned for ")[2] for text in reversed(reasons)] == [
        datetime.fromtimestamp(planned, ZONE).isoformat() for planned in expected
    ]
    assert "2027-03-28T03:00:00+02:00" in reasons[-87], "02:30 does not exist on that day"
    assert sum("2027-10-31T" in text for text in reasons) == 1, "02:30 exists twice on that day"

    outages = [(at(start), at(start) + length - MINUTE) for start, length in OUTAGES]
    missed = [planned for start, stop in outages for planned in list_between(twice, start, stop)]
    assert len(missed) == 2 + 6
    done = len(list_between(twice, begin, end)) - len(missed)
    assert count_jobs(engine) == done

    start, length = OUTAGES[1]
    count = clock.schedules.backfill("twice", at(start) // 1000, (at(start) + length) // 1000)
    clock.work()
    backfilled = [run["p"] for run in clock.schedules.history("twice") if run["w"] == "backfill"]
    assert (count, backfilled[::-1]) == (6, list_between(twice, at(start), at(start) + length))
    assert count_jobs(engine) == done + 6


def count_jobs(engine) -> int:
    return sum(engine.queues("report")["make_report"].values())
