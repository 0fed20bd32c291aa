"""When a schedule is due: by cron, by an interval, or once. Pure functions on whole seconds since the epoch.

Daylight saving, for cron with a fixed minute and hour, as Debian's cron has it: a time that does not exist on a day is
taken at the first moment after the gap, a time that exists twice is taken the first time. With ``*`` in the minute or
hour the schedule follows the time that passes: it skips the hour that is missing and runs in both of the doubled one.
An interval is time that passes, too: a day is 24 hours.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from .errors import Finding

DAY = 86400  # seconds
MAX_INTERVAL = 366 * 86400  # seconds
MAX_CRON = 200  # characters
LATEST = 253402300799 - 86400  # seconds: the last day of the year 9999 is beyond what a zone can show
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = (("minute", 60, "m"), ("hour", 24, "h"), ("day-of-month", 31, "d"), ("month", 12, ""), ("day-of-week", 7, "d"))
RANGES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, or L for the last",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT",
}
KINDS = ("cron", "every", "at")


class When(Protocol):
    """The occurrences of a schedule, without its start and end."""

    def iterate(self, after: int) -> Iterator[int]:
        """Yield the occurrences later than ``after``, in order; at some time none may come any more."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields of cron, in a time zone."""

    expression: str
    zone: str

    def iterate(self, after: int) -> Iterator[int]:
        if after > LATEST:
            return
        last = after
        for at in self._list_times(after):
            if at > LATEST:
                return
            if at > last:  # two times of a gap are one moment
                last = at
                yield at

    def _list_times(self, after: int) -> Iterator[int]:
        """Yield the times in order; the first ones may be over."""
        again: deque[int] = deque()  # second passes of the times so far
        for wall in self._walk(after):
            found = _find_times(wall, self.zone, follows=self._follows)
            while found and again and again[0] < found[0]:
                yield again.popleft()
            yield from found[:1]
            again.extend(found[1:])
        yield from again

    def explain(self) -> str:
        """Return the expression in English, as *At 08:00 on Monday through Friday*."""
        return str(CronSim(self.expression, datetime(2024, 1, 1, tzinfo=UTC)).explain())

    @property
    def _follows(self) -> bool:
        """Whether the schedule follows the time that passes."""
        return any(field.startswith("*") for field in self.expression.split(" ")[:2])

    def _walk(self, after: int) -> Iterator[datetime]:
        """Yield the times of a clock that is never put forward or back; the first ones may be over."""
        zone = _find_zone(self.zone)
        # A clock that is put back within the next day shows these times again.
        days = [datetime.fromtimestamp(after + ahead, zone) - timedelta(seconds=ahead) for ahead in (0, DAY)]
        try:
            for wall in CronSim(self.expression, min(day.replace(tzinfo=UTC) for day in days)):
                yield wall.replace(tzinfo=None)
        except (OverflowError, ValueError):
            return


@dataclass(frozen=True, slots=True)
class Interval:
    """Every so many seconds from ``anchor`` on."""

    seconds: int
    anchor: int

    def iterate(self, after: int) -> Iterator[int]:
        at = self.anchor + max(0, (after - self.anchor) // self.seconds + 1) * self.seconds
        while at <= LATEST:
            yield at
            at += self.seconds


@dataclass(frozen=True, slots=True)
class Once:
    at: int

    def iterate(self, after: int) -> Iterator[int]:
        if self.at > after:
            yield self.at


def read(when: object, zone: str, anchor: int) -> tuple[When | None, list[Finding]]:
    """Read ``{"cron": "30 2 * * *"}``, ``{"every": "61m"}`` or ``{"at": "2026-12-24T18:00"}``. ``zone`` is checked
    before."""
    if not isinstance(when, Mapping) or len(when) != 1 or next(iter(when)) not in KINDS:
        hint = 'one of {"cron": "30 2 * * *"}, {"every": "15m"}, {"at": "2026-12-24T18:00"}'
        return None, [Finding("when", "is not one of cron, every and at", hint)]
    kind, given = next(iter(when.items()))
    if kind == "cron":
        return _read_cron(given, zone)
    return _read_interval(given, anchor) if kind == "every" else _read_once(given, zone)


def check_zone(zone: object) -> list[Finding]:
    if isinstance(zone, str) and zone in _list_zones():
        return []
    return [Finding("zone", f"{zone!r} is no time zone", "a name of the IANA database, as Europe/Zurich or UTC")]


def read_moment(path: str, given: object, zone: str) -> tuple[int | None, list[Finding]]:
    """Read a moment in ISO 8601; without an offset it is local time of the zone."""
    hint = "ISO 8601, as 2026-12-24T18:00 in the zone of the schedule, or 2026-12-24T17:00:00Z"
    if not isinstance(given, str):
        return None, [Finding(path, f"{given!r} is no moment", hint)]
    try:
        moment = datetime.fromisoformat(given)
        local = moment.replace(tzinfo=moment.tzinfo or _find_zone(zone), microsecond=0)
        at = int(local.timestamp())
    except (ValueError, OverflowError) as error:
        return None, [Finding(path, f"{given!r} is no moment: {error}", hint)]
    if moment.tzinfo is None and datetime.fromtimestamp(at, _find_zone(zone)).replace(tzinfo=None) != local.replace(
        tzinfo=None
    ):
        return None, [Finding(path, f"{given} does not exist in {zone}: the clock is put forward then", "another time")]
    return at, []


def describe(at: int, zone: str = "UTC") -> str:
    """Return a moment as ISO 8601 with its offset."""
    return datetime.fromtimestamp(at, _find_zone(zone)).isoformat()


def compact(at: int) -> str:
    """Return a moment as part of an id: 20261224T170000Z."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).strftime("%Y%m%dT%H%M%SZ")


def parse_duration(given: object) -> int | None:
    """Return the whole seconds of ``90s``, ``61m``, ``2h``, ``1d`` or a number of seconds; None for anything else."""
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    match = re.fullmatch(r"\s*(\d{1,9})\s*([smhdw])\s*", given) if isinstance(given, str) else None
    return int(match[1]) * UNITS[match[2]] if match else None


def _read_interval(given: Any, anchor: int) -> tuple[When | None, list[Finding]]:
    seconds = parse_duration(given)
    if seconds is None:
        return None, [
            Finding("when.every", f"{given!r} is no interval", "a whole number and a unit: 90s, 61m, 2h, 1d, 1w")
        ]
    if not 1 <= seconds <= MAX_INTERVAL:
        return None, [Finding("when.every", f"{given!r} is out of range", "1s to 366d")]
    return Interval(seconds, anchor), []


def _read_once(given: Any, zone: str) -> tuple[When | None, list[Finding]]:
    at, findings = read_moment("when.at", given, zone)
    return (None if at is None else Once(at)), findings


def _read_cron(given: Any, zone: str) -> tuple[When | None, list[Finding]]:
    path = "when.cron"
    if not isinstance(given, str) or len(given) > MAX_CRON:
        return None, [Finding(path, "is no cron expression", 'five fields, as "30 2 * * *"')]
    expression = ALIASES.get(given.strip().lower(), " ".join(given.split()))
    parts = expression.split(" ")
    if len(parts) != len(FIELDS):
        fields = "minute hour day-of-month month day-of-week"
        return None, [Finding(path, f"{given!r} has {len(parts)} fields, not 5", f'{fields}, as "30 2 * * *"')]
    if findings := [
        finding for part, field in zip(parts, FIELDS, strict=True) for finding in _check_steps(part, *field)
    ]:
        return None, findings
    try:
        CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return None, [_explain(given, expression, str(error))]
    cron = Cron(expression, zone)
    if next(cron.iterate(0), None) is None:
        return None, [Finding(path, f"{given!r} never fires", "a day that the calendar has")]
    return cron, []


def _explain(given: str, expression: str, error: str) -> Finding:
    field = error.removeprefix("Bad ")
    if field == "day-of-month":
        months = expression.split(" ")[3]
        try:  # the days are fine where every month has them
            CronSim(
                " ".join([*expression.split(" ")[:3], "*", expression.split(" ")[4]]), datetime(2024, 1, 1, tzinfo=UTC)
            )
        except CronSimError:
            pass
        else:
            hint = "L is the last day of a month"
            return Finding("when.cron", f"{given!r} never fires: no month of {months} has that day", hint)
    return Finding("when.cron", f"{given!r}: {error[:1].lower()}{error[1:]}", f"{field} is {RANGES.get(field, '')}")


def _check_steps(part: str, field: str, size: int, unit: str) -> list[Finding]:
    """Refuse a step that is longer than its field: it would count once in each, and not as it reads."""
    for step in re.findall(r"/(\d+)", part):
        if int(step) >= size and int(step) > 1:
            hint = f'an interval is written {{"every": "{step}{unit}"}}' if unit else "a smaller step"
            return [
                Finding("when.cron", f"{part!r}: a {field} has no step of {step}: it would begin anew each time", hint)
            ]
    if field == "minute" and part.isdigit() and int(part) > 59:
        return [
            Finding("when.cron", f"a minute is 0 to 59, not {part}", f'an interval is written {{"every": "{part}m"}}')
        ]
    return []


def _find_times(wall: datetime, zone: str, *, follows: bool) -> list[int]:
    """Return when the clock of a zone shows this time. For one that it never shows: when the gap ends, nothing with
    ``follows``. For one that it shows twice: the first time, both with ``follows``."""
    local = wall.replace(tzinfo=_find_zone(zone))
    first, second = int(local.timestamp()), int(local.replace(fold=1).timestamp())
    if first < second:
        return [first, second] if follows else [first]
    if first > second:  # the offset of before the gap makes a moment after it
        return [] if follows else [_find_change(second, first, zone)]
    return [first]


def _find_change(before: int, after: int, zone: str) -> int:
    """Return the first moment with the offset that the zone has at ``after``."""
    offset = datetime.fromtimestamp(after, _find_zone(zone)).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, _find_zone(zone)).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


@lru_cache(maxsize=64)
def _find_zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _list_zones() -> frozenset[str]:
    return frozenset(available_timezones())
