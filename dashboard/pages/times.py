"""Times as people read them. ``static/js/ages.js`` ticks them on with the same words."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def age(seconds: float) -> str:
    """Two units at most: ``45 s``, ``3 min``, ``2 h 5 min``, ``3 d 4 h``, ``45 d``. Below zero counts as zero."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        return _two(whole // HOUR, "h", whole % HOUR // MINUTE, "min")
    if whole < 10 * DAY:
        return _two(whole // DAY, "d", whole % DAY // HOUR, "h")
    return f"{whole // DAY} d"


def span(ms: float) -> str:
    """How long something took: ``<1 ms``, ``120 ms``, ``1.4 s``, from ten seconds on like an age."""
    if ms < 1:
        return "<1 ms"
    if ms < 1000:
        return f"{int(ms)} ms"
    return f"{int(ms / 100) / 10} s" if ms < 10_000 else age(ms / 1000)


def _two(large: int, unit: str, small: int, part: str) -> str:
    return f"{large} {unit} {small} {part}" if small else f"{large} {unit}"


def moment(ms: float) -> datetime | None:
    """A time in ms since 1970 as UTC, or None for one no calendar has."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def exact(ms: float) -> str:
    """``2026-11-21 02:22:03 UTC``: what the title of every age says."""
    at = moment(ms)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if at else "an unknown time"
