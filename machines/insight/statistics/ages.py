"""Formats ages and durations. Pages and alarms use the same words."""

MINUTE, HOUR, DAY = 60, 3600, 86400


def format_age(seconds: float) -> str:
    """Format two units at most: ``45 s``, ``3 min``, ``2 h 5 min``, ``45 d``. Below zero counts as zero."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        return _format_two_units(whole // HOUR, "h", whole % HOUR // MINUTE, "min")
    if whole < 10 * DAY:
        return _format_two_units(whole // DAY, "d", whole % DAY // HOUR, "h")
    return f"{whole // DAY} d"


def format_duration(ms: float) -> str:
    """Format a duration: ``<1 ms``, ``120 ms``, ``1.4 s``, from ten seconds on like an age."""
    if ms < 1:
        return "<1 ms"
    if ms < 1000:
        return f"{int(ms)} ms"
    return f"{int(ms / 100) / 10} s" if ms < 10_000 else format_age(ms / 1000)


def _format_two_units(large: int, unit: str, small: int, part: str) -> str:
    return f"{large} {unit} {small} {part}" if small else f"{large} {unit}"
