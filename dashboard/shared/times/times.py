"""Formats times. ``static/signalbox/js/shared/ages.js`` updates them with the same words; ``format.js`` formats alike.

Times are in the zone and on the clock of the person (``time_zones``), with the offset from UTC, since
abbreviations such as IST name several zones.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from machines.statistics.ages import format_age, format_duration

__all__ = [
    "clock",
    "format_age",
    "format_duration",
    "format_element",
    "format_iso",
    "format_local",
    "format_offset",
    "format_time_of_day",
    "format_until",
    "format_utc",
    "in_ms",
    "read_local",
    "read_utc",
]

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
    at = read_utc(ms)  # no part of it is anybody's text: nothing to escape
    iso, utc = (at.isoformat(timespec="milliseconds"), f"{str(at)[:19]} UTC") if at else ("", UNKNOWN)
    return SafeString(
        f'<time class="tick" datetime="{iso}" title="{utc}" data-at="{int(ms)}" data-kind="{kind}">{age}</time>'
    )


def _time_of_day(at: datetime) -> str:
    if clock.get() == 12:
        return f"{at.hour % 12 or 12}:{at:%M:%S} {'am' if at.hour < 12 else 'pm'}"
    return f"{at:%H:%M:%S}"
