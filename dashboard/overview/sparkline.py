"""Draws a sparkline as SVG with a text alternative. No script draws it, and none is needed to read it."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

WIDTH, HEIGHT, EDGE = 96, 22, 2  # units of the drawing; the edge keeps the line's width inside


def draw_sparkline(values: Sequence[float | None], over: str) -> SafeString:
    """Draw rates per minute, the newest last; None leaves a gap. ``over``: the interval in words."""
    known = [value for value in values if value is not None]
    if not known:
        return format_html('<span class="faint">{}</span>', "no data")
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<path class="base" d="M0 {} H{}"/>'
        '<path d="{}"/></svg>',
        WIDTH, HEIGHT, describe(values, over), describe(values, over), HEIGHT - EDGE, WIDTH, trace(values),
    )  # fmt: skip


def describe(values: Sequence[float | None], over: str) -> str:
    """Return ``transitions per minute over the last hour: 0 to 42, latest 12``, with the steps that have no data."""
    known = [value for value in values if value is not None]
    gaps = len(values) - len(known)
    missing = f", no data in {gaps} of {len(values)} steps" if gaps else ""
    low, high, latest = (_format(value) for value in (min(known), max(known), known[-1]))
    return f"transitions per minute over {over}: {low} to {high}, latest {latest}{missing}"


def trace(values: Sequence[float | None]) -> str:
    """Return the path of the line. A value between two gaps is a dot."""
    high = max([value for value in values if value is not None], default=0) or 1
    step = WIDTH / max(1, len(values) - 1)
    parts: list[str] = []
    pen = False
    for place, value in enumerate(values):
        if value is None:
            pen = False
            continue
        x, y = place * step, HEIGHT - EDGE - value / high * (HEIGHT - 2 * EDGE)
        parts.append(f"L{x:.1f} {y:.1f}" if pen else f"M{x:.1f} {y:.1f}h.1")
        pen = True
    return "".join(parts)


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}".removesuffix(".0")
