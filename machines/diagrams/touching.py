"""Lines end where they lead to.

Between two neighbours of one row that are not equally high, Graphviz now and then draws a line along the border of the
higher one, past the other. Such a line is led on to the nearest place of the border it missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from .geometry import Box, Curve, Point
from .tree import Tree
from .wiring import homes, wires

NEAR = 2.0  # pixels nobody sees


def touching(tree: Tree, boxes: Mapping[str, Box], curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """The curves, each with its tip at the node it leads to; a line to a state around its source ends inside of it."""
    level, found = homes(tree), dict(curves)
    for wire in wires(tree):
        curve, box = found.get(wire.id), boxes.get(wire.head)
        if curve is None or box is None or level.get(wire.head) != level.get(wire.tail):
            continue
        nearest = _nearest(box, curve.tip)
        if math.dist(nearest, curve.tip) > NEAR:
            found[wire.id] = replace(curve, tip=nearest)
    return found


def _nearest(box: Box, point: Point) -> Point:
    """Of a box, to a point outside; a point inside is its own."""
    x, y = point
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
