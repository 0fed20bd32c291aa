"""The small signs of statecharts: a clock for timers, linked rings for a machine that a state runs."""

from __future__ import annotations

from machines.diagrams.layout import sizes

from .elements import Element, element

OUTLINED = {"fill": "none", "stroke": "currentColor"}
CLOCK = 4.5  # radius


def draw_sign(parent: Element, sign: str, x: float, y: float) -> float:
    """Draw a sign. ``x`` is the sign's left edge, ``y`` its middle. Returns how far what follows stands back; no sign,
    no room."""
    if not sign:
        return 0.0
    SIGNS[sign](parent, x, y)
    return sizes.MARK_ROOM


def _clock(parent: Element, x: float, y: float) -> None:
    middle = x + CLOCK + 0.5
    element(parent, "circle", class_="sign", cx=middle, cy=y, r=CLOCK, **OUTLINED)
    element(
        parent,
        "path",
        class_="sign",
        d=f"M{middle:.1f},{y - 2.8:.1f}V{y:.1f}L{middle + 2.1:.1f},{y + 1.2:.1f}",
        **OUTLINED,
    )


def _child(parent: Element, x: float, y: float) -> None:
    """Draw UML's sign of a machine in a state: two rings on one line."""
    for ring in (x + 2.8, x + 9.2):
        element(parent, "circle", class_="sign", cx=ring, cy=y, r=2.3, **OUTLINED)
    element(parent, "path", class_="sign", d=f"M{x + 5.1:.1f},{y:.1f}H{x + 6.9:.1f}", **OUTLINED)


def _condition(parent: Element, x: float, y: float) -> None:
    """Draw UML's diamond of a choice: the line is taken when its guard is true."""
    element(parent, "path", class_="sign guarded", d=f"M{x + 0.5:.1f},{y:.1f}l5,-4.5l5,4.5l-5,4.5Z", **OUTLINED)


def _else(parent: Element, x: float, y: float) -> None:
    """Draw the diamond, crossed out: the line is taken when the guards before it are false."""
    _condition(parent, x, y)
    element(parent, "path", class_="sign guarded", d=f"M{x + 2:.1f},{y:.1f}h7", **OUTLINED)


SIGNS = {"clock": _clock, "child": _child, "condition": _condition, "else": _else}
