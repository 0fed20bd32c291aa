"""Daylight saving in every time zone: cron against a walk over the minutes that pass."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest

from machines.schedules.occurrences import Cron
from tests.cases import for_each

pytestmark = pytest.mark.pure
PAGE = Path(__file__).parents[2] / "docs" / "schedules.md"
YEAR = 2026
MINUTE, HOUR, DAY = 60, 3600, 86400
BEGIN = calendar.timegm((YEAR, 1, 1, 0, 0, 0))
EXPRESSIONS = [
    "*/20 2 * * *", "0,20,40 2 * * *", "*/30 * * * *", "15 * * * *", "15 */2 * * *", "30 2 * * *", "5 0 * * *",
    "59 23 * * *", "0,30 0-3 * * *", "*/7 1-2 * * SUN", "45 1 * * *", "* 1 * * *",
]  # fmt: skip


@lru_cache(maxsize=1000)
def offset(zone: str, at: int) -> timedelta:
    return datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset()


@cache
def changes(zone: str) -> list[int]:
    """The moments of the year at which the clock of a zone is put forward or back."""
    found = []
    for day in range(BEGIN, BEGIN + 365 * DAY, DAY):
        if offset(zone, day) != offset(zone, day + DAY):
            found += [m for m in range(day, day + DAY, MINUTE) if offset(zone, m) != offset(zone, m + MINUTE)]
    return found


def list_zones() -> list[str]:
    """Return the zones whose clock changes; of those that change alike the first."""
    found: dict[tuple, str] = {}
    for zone in sorted(available_timezones()):
        if not zone.startswith(("posix", "right")) and (moments := changes(zone)):
            found.setdefault(tuple((m, offset(zone, m), offset(zone, m + MINUTE)) for m in moments), zone)
    return list(found.values())


def field(text: str) -> set[int]:
    """The values of a field, of the few forms that are used here."""
    if text == "SUN":
        return {6}
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        numbers = range(60) if span == "*" else range(int(low), int(high or low) + 1)
        values |= set(numbers[:: int(step or 1)])
    return values


@lru_cache(maxsize=4)
def walls(zone: str, begin: int, end: int) -> dict[int, datetime]:
    """What the clock on the wall shows at each minute."""
    return {at: datetime.fromtimestamp(at, ZoneInfo(zone)).replace(tzinfo=None) for at in range(begin, end, MINUTE)}


def walk(expression: str, zone: str, begin: int, end: int) -> list[int]:
    """When cron is due, by the clock on the wall of each minute."""
    minutes, hours, _, _, days = expression.split(" ")
    wanted = field(minutes), field(hours), set(range(7)) if days == "*" else field(days)

    def matches(wall: datetime) -> bool:
        return wall.minute in wanted[0] and wall.hour in wanted[1] and wall.weekday() in wanted[2]

    shown = walls(zone, begin, end)
    if expression[0] == "*" or hours[0] == "*":
        return [at for at, wall in shown.items() if matches(wall)]
    found, seen, last = [], set(), None
    for at, wall in shown.items():
        passed = (
            []
            if last is None
            else [last + timedelta(minutes=n) for n in range(1, (wall - last) // timedelta(minutes=1))]
        )
        if any(matches(one) for one in passed) or (matches(wall) and wall not in seen):
            found.append(at)
        seen |= {*passed, wall}
        last = wall
    return found


@pytest.mark.hostile
@for_each("zone", list_zones)
def test_cron_is_due_as_the_clock_of_the_zone_shows(zone):
    for change in changes(zone):
        begin, end = change - 6 * HOUR, change + 30 * HOUR
        for expression in EXPRESSIONS:
            found = list(takewhile(lambda at, end=end: at < end, Cron(expression, zone).iterate(begin - 1)))
            assert found == walk(expression, zone, begin, end), (expression, datetime.fromtimestamp(change, UTC))


def test_it_goes_on_from_any_moment_as_from_the_beginning():
    """Asked again after each occurrence, as schedules are, and from the minutes between."""
    for zone in ("Australia/Lord_Howe", "Europe/Zurich", "Antarctica/Troll"):
        for change in changes(zone):
            for expression in ("*/20 2 * * *", "*/20 1-3 * * *", "10 1-3 * * *"):
                begin, end = change - 4 * HOUR, change + 4 * HOUR
                whole = walk(expression, zone, change - 12 * HOUR, change + 30 * HOUR)
                for after in range(begin, end, 5 * MINUTE):
                    expected = next(at for at in whole if at > after)
                    assert next(Cron(expression, zone).iterate(after)) == expected, (zone, expression, after)


def test_the_half_hour_of_lord_howe_island_is_not_skipped():
    begin = int(datetime(2026, 4, 5, tzinfo=ZoneInfo("Australia/Lord_Howe")).timestamp())
    found = takewhile(lambda at: at < begin + DAY, Cron("*/20 2 * * *", "Australia/Lord_Howe").iterate(begin))
    assert [datetime.fromtimestamp(at, ZoneInfo("Australia/Lord_Howe")).strftime("%H:%M %z") for at in found] == [
        "02:00 +1030", "02:20 +1030", "02:40 +1030",
    ]  # fmt: skip


ROWS = re.findall(r"^\| `(.+?)` \| (.+?) → (.+?) \| (.+?) → (.+?) \|$", PAGE.read_text(), re.MULTILINE)


@for_each("row", ROWS)
def test_the_table_of_the_page_shows_the_changes_of_the_year(row):
    zone, *told = row
    shown = {}
    for change in changes(zone):
        wall = [datetime.fromtimestamp(change, ZoneInfo(zone)) + timedelta(minutes=1)]
        wall.append(datetime.fromtimestamp(change + MINUTE, ZoneInfo(zone)))
        shown[offset(zone, change) < offset(zone, change + MINUTE)] = [f"{wall[0]:%d %b %H:%M}", f"{wall[1]:%H:%M}"]
    assert told == [*shown[True], *shown[False]]


def test_the_table_has_the_odd_zones():
    assert {"Australia/Lord_Howe", "Antarctica/Troll", "Africa/Cairo", "Pacific/Chatham"} <= {row[0] for row in ROWS}
