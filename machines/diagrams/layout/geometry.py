"""Where everything is: what Graphviz worked out, turned to SVG's axes (y grows downwards, the corner is 0,0).

A level that has been laid out: the places of its nodes and pieces, counted from its upper left corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .routes import Wire

Point = tuple[float, float]


def between(start: Point, end: Point, part: float) -> Point:
    """Return the point that lies ``part`` of the way from one to the other."""
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


@dataclass(frozen=True, slots=True)
class Box:
    """Centre and size of a node or a cluster."""

    x: float
    y: float
    width: float
    height: float

    def shift(self, x: float, y: float) -> Box:
        return Box(self.x + x, self.y + y, self.width, self.height)

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Curve:
    """A cubic Bézier spline (1 + 3n points), the tip of its arrow, and the centre of its label."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None

    def shift(self, x: float, y: float) -> Curve:
        def move(point: Point) -> Point:
            return point[0] + x, point[1] + y

        return Curve(tuple(map(move, self.points)), move(self.tip), move(self.label) if self.label else None)


@dataclass(frozen=True, slots=True)
class Layout:
    """``boxes`` by the id of a node or cluster, ``curves`` by that of an edge. ``crossed``: a curve whose label others
    run through -> those. ``wires``: the lines that were laid out, in the order they are drawn."""

    width: float
    height: float
    boxes: dict[str, Box]
    curves: dict[str, Curve]
    crossed: dict[str, set[str]] = field(default_factory=dict)
    wires: Sequence[Wire] = ()


@dataclass(slots=True)
class Block:
    """``curves`` by the id of their wire. ``gates``: port -> (how far from the left edge, whether at the bottom)."""

    width: float
    height: float
    boxes: dict[str, Box] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    gates: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def shift(self, x: float, y: float) -> Block:
        """Return the same block elsewhere, in a larger one."""
        boxes = {id: box.shift(x, y) for id, box in self.boxes.items()}
        curves = {id: curve.shift(x, y) for id, curve in self.curves.items()}
        return Block(self.width, self.height, boxes, curves, self.gates)
