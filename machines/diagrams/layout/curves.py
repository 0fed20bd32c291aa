"""Where everything is, and the pieces of a line put together. Axes are those of SVG: y grows downwards.

Between two neighbours of one row that are not equally high, and now and then where a line crosses several levels,
Graphviz draws past the node it was to reach. Such a line is led on to the nearest place of the border it missed.

Lines from a state to itself, where the state is drawn around others, or a queue stands beside it.

Graphviz lets such lines bulge with the height of the box, one around the other. There is room on its side: they are
put below each other there, small, each with its label. Beside a state that feeds a queue, they make room for the line
to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from machines.diagrams.part_names import state_id

from . import labels
from .labels import state_name
from .routes import Level, Piece, Route, Routes, Wire
from .state_tree import Tree

ARROW = 7.0  # length of a head: the line ends before it
NEAR = 2.0  # pixels nobody sees
HEAD = 8.0  # pixels of an arrow's head
REACH = 26.0  # how far the line goes out
TURN = 8.0  # half of the distance between its ends
AIR = 10.0  # between two
LIFT = 3.0  # between a label and a line below it
OVER = 29.0  # how far a label may stand out above its state: less than rows are apart
Point = tuple[float, float]


def join(tree: Tree, route: Route, pieces: Mapping[tuple[Level, str], Curve], boxes: Mapping[str, Box]) -> Curve | None:
    """Return one curve; None where a piece of it has no place."""
    found = [pieces.get((piece.level, route.wire.id)) for piece in route.pieces]
    curves = [curve for curve in found if curve is not None]
    if len(curves) < len(found):
        return None
    points = curves[0].points
    for curve in curves[1:]:
        points = (*points, *_straighten(points[-1], curve.points[0]), *curve.points[1:])
    whole = Curve(points, curves[-1].tip, curves[0].label)
    if not route.heading:
        return whole
    state = tree.state(route.pieces[route.top].level)
    assert state is not None
    below = boxes[state_id(state.index)].top + labels.heading_size(state_name(state), tree.details(state))[1]
    return _begin_at(whole, below) if route.heading == "tail" else _end_at(whole, below)


def _begin_at(curve: Curve, y: float) -> Curve:
    """Begin at the heading, straight above where it began."""
    start = curve.points[0]
    above = start[0], y
    return replace(curve, points=(above, *_straighten(above, start), *curve.points[1:]))


def _end_at(curve: Curve, y: float) -> Curve:
    """End at the heading, straight above where it ended."""
    last = curve.points[-1]
    tip = last[0], y
    return replace(curve, points=(*curve.points, *_straighten(last, (tip[0], y + ARROW))), tip=tip)


def _straighten(start: Point, end: Point) -> tuple[Point, Point, Point]:
    """Return the rest of a piece of curve after its first point."""
    return between(start, end, 1 / 3), between(start, end, 2 / 3), end


def touching(routes: Routes, boxes: Mapping[str, Box], curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return the curves, each from the node it leaves and with its tip at the node it leads to; a line between a state
    and one inside of it stays inside."""
    found = dict(curves)
    for wire in routes.wires:
        if (curve := found.get(wire.id)) is None:
            continue
        head, tail = boxes.get(wire.head), boxes.get(wire.tail)
        if head is not None and not routes.is_around(wire.head, wire.tail):
            tip = _find_nearest_point(head, curve.tip)
            curve = _lead_on(curve, tip) if math.dist(tip, curve.tip) > NEAR else curve
        if tail is not None and not routes.is_around(wire.tail, wire.head):
            start = _find_nearest_point(tail, curve.points[0])
            if math.dist(start, curve.points[0]) > NEAR:
                curve = replace(curve, points=(start, *_straighten(start, curve.points[0]), *curve.points[1:]))
        found[wire.id] = curve
    return found


def _lead_on(curve: Curve, tip: Point) -> Curve:
    """Lead the curve with a straight piece to where the arrow's head begins, if that is not there already."""
    start, far = curve.points[-1], math.dist(curve.points[-1], tip)
    if far <= 2 * HEAD:
        return replace(curve, tip=tip)
    end = between(start, tip, 1 - HEAD / far)
    piece = (between(start, end, 1 / 3), between(start, end, 2 / 3), end)
    return replace(curve, points=(*curve.points, *piece), tip=tip)


def _find_nearest_point(box: Box, point: Point) -> Point:
    """Return the point of a box that is nearest to a point outside; a point inside is its own."""
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)


def stack(block: Block, node: str, pieces: Iterable[Piece]) -> None:
    """Move the node's lines to itself, if there is room for them all."""
    box = block.boxes[node]
    loops = [(piece, *_size(piece)) for piece in pieces if piece.tail == piece.head == node]
    y = box.top + labels.NAME_LINE + 2 * labels.HEADING_PAD + AIR
    if y + sum(height + AIR for _, _, height in loops) > box.bottom:
        return
    for piece, width, height in loops:
        block.curves[piece.wire.id] = loop(box, y + height / 2, width)
        y += height + AIR


def raise_loops(block: Block, node: str, pieces: Iterable[Piece]) -> None:
    """Move the node's lines to itself above the middle of its side, where the line to a queue leaves it.

    Each stands above the other, as far as they reach no row above.
    """
    box, foot = block.boxes[node], block.boxes[node].y - LIFT
    for piece in pieces:
        if not piece.tail == piece.head == node:
            continue
        width, height = _size(piece)
        if foot - height < box.top - OVER:
            return
        block.curves[piece.wire.id] = loop(box, max(foot - height / 2, box.top + TURN), width, foot - height / 2)
        foot -= height


def _size(piece: Piece) -> tuple[float, float]:
    width, height = piece.wire.size
    return width + labels.LABEL_GAP, max(height, 2 * TURN)


def loop(box: Box, y: float, width: float, label: float | None = None) -> Curve:
    """Draw a loop: out of the right side at the height ``y``, round, and back; a label of this width stands beyond, at
    the height ``label`` if not at the same."""
    out = box.right + REACH
    points = ((box.right, y - TURN), (out, y - TURN), (out, y + TURN), (box.right + HEAD, y + TURN))
    return Curve(points, (box.right, y + TURN), (out + width / 2, y if label is None else label))


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
