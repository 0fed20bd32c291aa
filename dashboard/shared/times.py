"""Formats times. ``static/signalbox/js/shared/ages.js`` updates them with the same words; ``format.js`` formats alike.

Times are in the zone and on the clock of the person (``TimeZoneMiddleware``), with the offset from UTC, since
abbreviations such as IST name several zones.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.db import router
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.models import Preferences
from dashboard.site.mount_point import is_for_machines
from machines.conf.database import PreparedQuery
from machines.engine.definitions import FieldOutline
from machines.insight.statistics.ages import format_age
from machines.people import last_seen

from .async_middleware import WrappingMiddleware
from .errors.redis_outage import CAUSES

UNKNOWN = "an unknown time"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

clock = ContextVar("clock", default=24)
"""24 or 12, by the person's preferences."""


def in_ms(moment: datetime) -> int:
    """Return milliseconds since the epoch, as pages, scripts and the API take a time."""
    return int(moment.timestamp() * 1000)


def format_until(seconds: float) -> str:
    """Format the time until a moment: ``in 12 s``, and ``overdue 3 s`` once it is past."""
    return f"in {format_age(-seconds)}" if seconds <= 0 else f"overdue {format_age(seconds)}"


def read_utc(ms: float) -> datetime | None:
    """Return a time in ms since 1970 as UTC, or None outside of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def read_local(ms: float) -> datetime | None:
    """Return a time in ms since 1970 in the person's zone, or None outside of the calendar."""
    at = read_utc(ms)
    try:
        return at and timezone.localtime(at)
    except OverflowError:  # the first or last hours of the calendar
        return None


def format_utc(ms: float) -> str:
    """Format ``2026-11-21 02:22:03 UTC``, the title of every time."""
    at = read_utc(ms)
    return f"{str(at)[:19]} UTC" if at else UNKNOWN


def format_iso(ms: float) -> str:
    """Format ``2026-11-21T02:22:03.123+00:00`` for ``datetime`` attributes; empty outside of the calendar."""
    at = read_utc(ms)
    return at.isoformat(timespec="milliseconds") if at else ""


def format_local(ms: float) -> str:
    """Format ``21 Nov 2026, 03:22:03 UTC+1``."""
    at = read_local(ms)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}, {_time_of_day(at)} {format_offset(at)}" if at else UNKNOWN


def format_time_of_day(ms: float) -> str:
    """Format ``03:22:03 UTC+1``."""
    at = read_local(ms)
    return f"{_time_of_day(at)} {format_offset(at)}" if at else "–"


def format_offset(at: datetime) -> str:
    """Format ``UTC``, ``UTC+1``, ``UTC-3:30``."""
    minutes = round((at.utcoffset() or UTC.utcoffset(None)).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    if not minutes:
        return "UTC"
    return f"UTC{'+' if minutes > 0 else '-'}{hours}{f':{rest:02}' if rest else ''}"


def format_element(ms: float) -> SafeString:
    """Format a ``<time>`` element in the person's zone; its title is in UTC."""
    return format_html('<time datetime="{}" title="{}">{}</time>', format_iso(ms), format_utc(ms), format_local(ms))


def format_ticking(ms: float | None, now: float, kind: str) -> SafeString:
    """Format a ``<time>`` element whose age the script renews; a dash where there is no time.

    ``now``: ms that the age counts from; ``kind``: "ago" or "until".
    """
    if not ms:
        return SafeString("–")
    age = (format_until if kind == "until" else format_age)((now - ms) / 1000)
    at = read_utc(ms)  # no part of it is a person's text: nothing to escape
    iso, utc = (at.isoformat(timespec="milliseconds"), f"{str(at)[:19]} UTC") if at else ("", UNKNOWN)
    return SafeString(
        f'<time class="tick" datetime="{iso}" title="{utc}" data-at="{int(ms)}" data-kind="{kind}">{age}</time>'
    )


def _time_of_day(at: datetime) -> str:
    if clock.get() == 12:
        return f"{at.hour % 12 or 12}:{at:%M:%S} {'am' if at.hour < 12 else 'pm'}"
    return f"{at:%H:%M:%S}"


INTEGER = ({"integer"}, {"integer", "null"})
SECONDS = re.compile(r"\bunix seconds\b", re.IGNORECASE)
MILLISECONDS = re.compile(r"\b(ms|milliseconds)\b", re.IGNORECASE)
FROM, UNTIL = 978_307_200_000, 4_102_444_800_000  # ms: the years 2001 to 2099


class TimeFields:
    """Holds the fields of a machine that hold times, each with the ms of its unit."""

    def __init__(self, fields: Iterable[FieldOutline]) -> None:
        self._units = {field.name: unit for field in fields if (unit := _find_unit(field))}

    def moment(self, name: str, value: Any) -> int | None:
        """Return the time of a value in ms, or None if it is none."""
        unit = self._units.get(name)
        if unit is None or not isinstance(value, int) or isinstance(value, bool):
            return None
        return value * unit if FROM <= value * unit < UNTIL else None


def _find_unit(field: FieldOutline) -> int | None:
    if set(field.types) not in INTEGER:
        return None
    if SECONDS.search(field.description):
        return 1000
    return 1 if MILLISECONDS.search(field.description) else None


FIELDS = Preferences._meta.concrete_fields
_kept = PreparedQuery(
    Preferences,
    lambda pk: Preferences.objects.filter(user_id=pk).values_list(*(field.attname for field in FIELDS)),
)


class TimeZoneMiddleware(WrappingMiddleware):
    """Sets ``request.preferences``, activates time zone and clock, and records that the person was seen.

    It sits behind the authentication.
    """

    async_capable = False

    @contextlib.contextmanager
    def wrap(self, request: HttpRequest) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
        if is_for_machines(request):
            yield lambda response: response
            return
        request.preferences = _read_preferences(request.user)
        token = clock.set(request.preferences.clock)
        try:
            with timezone.override(zone_of(request.preferences.time_zone)):
                yield lambda response: response
        finally:
            clock.reset(token)


def preferences_of(user: Any) -> Preferences:
    """Return the preferences of the user, or unsaved defaults. One query.

    While the sessions' Redis is away the user is unknown; the view and the outage page handle that.
    """
    try:
        if user.is_authenticated:
            return _read_kept(user.pk) or Preferences(user=user)
    except CAUSES:
        pass
    return Preferences()


def _read_kept(pk: Any) -> Preferences | None:
    for row in _kept.rows(pk):
        values = [field.to_python(value) for field, value in zip(FIELDS, row, strict=True)]
        return Preferences.from_db(router.db_for_read(Preferences), [field.attname for field in FIELDS], values)
    return None


def _read_preferences(user: Any) -> Preferences:
    kept = preferences_of(user)
    if kept.user_id:
        last_seen.noting.person(kept.user_id)
    return kept


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name, or the site's if it does not exist (any more)."""
    if name in _list_zone_names():
        return ZoneInfo(name)
    return timezone.get_default_timezone()


def is_zone(name: str) -> bool:
    return name in _list_zone_names()


@functools.cache
def choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """List the time zones for a select, by continent, and UTC."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(_list_zone_names()):
        continent, _, place = name.partition("/")
        if place and continent in CONTINENTS:
            groups.setdefault(continent, []).append((name, place.replace("_", " ")))
    return [("Everywhere", [("UTC", "UTC")]), *groups.items()]


CONTINENTS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


@functools.cache
def _list_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())
