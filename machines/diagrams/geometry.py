"""Where everything is: what Graphviz worked out, turned to SVG's axes (y grows downwards, the corner is 0,0)."""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Centre and size of a node."""

    x: float
    y: float
    width: float
    height: float

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


@dataclass(frozen=True, slots=True)
class Layout:
    """``boxes`` by node id, ``curves`` by edge id."""

    width: float
    height: float
    boxes: dict[str, Box]
    curves: dict[str, Curve]
