"""Lines end where they lead to.

Between two neighbours of one row that are not equally high, and now and then where a line crosses several levels,
Graphviz draws past the node it was to reach. Such a line is led on to the nearest place of the border it missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from .geometry import Box, Curve, Point, between
from .names import state_id
from .tree import Tree
from .wiring import homes, wires

NEAR = 2.0  # pixels nobody sees
HEAD = 8.0  # pixels of an arrow's head


def touching(tree: Tree, boxes: Mapping[str, Box], curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """The curves, each with its tip at the node it leads to; a line to a state around its source ends inside of it."""
    level, found = homes(tree), dict(curves)
    names = {state_id(state.index): state.name for state in tree.outline.states}
    for wire in wires(tree):
        curve, box, home = found.get(wire.id), boxes.get(wire.head), level.get(wire.tail)
        if curve is None or box is None or (home is not None and names.get(wire.head) in tree.ancestors(home)):
            continue
        tip = _nearest(box, curve.tip)
        if math.dist(tip, curve.tip) > NEAR:
            found[wire.id] = _led_on(curve, tip)
    return found


def _led_on(curve: Curve, tip: Point) -> Curve:
    """With a straight piece to where the arrow's head begins, if that is not there already."""
    start, far = curve.points[-1], math.dist(curve.points[-1], tip)
    if far <= 2 * HEAD:
        return replace(curve, tip=tip)
    end = between(start, tip, 1 - HEAD / far)
    piece = (between(start, end, 1 / 3), between(start, end, 2 / 3), end)
    return replace(curve, points=(*curve.points, *piece), tip=tip)


def _nearest(box: Box, point: Point) -> Point:
    """Of a box, to a point outside; a point inside is its own."""
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
