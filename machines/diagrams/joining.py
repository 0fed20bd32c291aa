"""The pieces of a line put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import sizes
from .geometry import Box, Curve, Point, between
from .labels import state_name
from .names import state_id
from .routes import Route
from .tree import Tree
from .wiring import Level

ARROW = 7.0  # length of a head: the line ends before it


def joined(
    tree: Tree, route: Route, pieces: Mapping[tuple[Level, str], Curve], boxes: Mapping[str, Box]
) -> Curve | None:
    """One curve; None where a piece of it has no place."""
    found = [pieces.get((piece.level, route.wire.id)) for piece in route.pieces]
    curves = [curve for curve in found if curve is not None]
    if len(curves) < len(found):
        return None
    points = curves[0].points
    for curve in curves[1:]:
        points = (*points, *_straight(points[-1], curve.points[0]), *curve.points[1:])
    whole = Curve(points, curves[-1].tip, curves[0].label)
    if not route.heading:
        return whole
    below = _heading_end(tree, route, boxes)
    return _from(whole, below) if route.heading == "tail" else _up_to(whole, below)


def _heading_end(tree: Tree, route: Route, boxes: Mapping[str, Box]) -> float:
    state = tree.state(route.pieces[route.top].level)
    assert state is not None
    return boxes[state_id(state.index)].top + sizes.heading_size(state_name(state), tree.details(state))[1]


def _from(curve: Curve, y: float) -> Curve:
    """Begins at the heading, straight above where it began."""
    start = curve.points[0]
    above = start[0], y
    return replace(curve, points=(above, *_straight(above, start), *curve.points[1:]))


def _up_to(curve: Curve, y: float) -> Curve:
    """Ends at the heading, straight above where it ended."""
    last = curve.points[-1]
    tip = last[0], y
    return replace(curve, points=(*curve.points, *_straight(last, (tip[0], y + ARROW))), tip=tip)


def _straight(start: Point, end: Point) -> tuple[Point, Point, Point]:
    """The rest of a piece of curve after its first point."""
    return between(start, end, 1 / 3), between(start, end, 2 / 3), end
