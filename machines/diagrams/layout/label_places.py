"""Where the labels of lines stand: on their own line or beside it, clear of states, of other labels and other lines.

Graphviz keeps room for each label of a level that it draws with curves. With straight lines it does not, and
a line that was led elsewhere afterwards has left its label. Those labels are placed anew along their line.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from . import labels
from .curves import Box, Curve, Point
from .routes import Wire

FAR = 14.0  # pixels from a label to its line, beyond which the eye loses it
CELL = 48.0  # pixels: width of a cell of the map that finds what is near
STEP = 10.0  # pixels between two points of a line, where it is compared with labels
PARTS = sorted((number / 40 for number in range(1, 40)), key=lambda part: abs(part - 0.5))  # of the way
MOST_TRIED = 12_000  # places for all labels together: with many labels to move, each gets fewer
LEAST_PARTS = 7
Bounds = tuple[float, float, float, float]  # left, right, top, bottom
ON_NODE, ON_LABEL, ON_LINE = 1000, 300, 10  # costs of a place
T = TypeVar("T")
_Map = dict[tuple[int, int], list[T]]  # what stands in each cell


def place_labels(
    wires: Iterable[Wire], boxes: Mapping[str, Box], curves: Mapping[str, Curve], around: Collection[str] = ()
) -> tuple[dict[str, Curve], dict[str, set[str]]]:
    """Return the curves, with labels moved that stand away from their line, on a state, on a label or on a line; and
    label -> the lines that still run through it. Both are named by the ids of their lines. ``around``: the boxes that
    are drawn around others; a label may stand inside of one."""
    sizes_of = {wire.id: wire.size for wire in wires if wire.labelled and wire.id in curves}
    near, found = _Neighbours(boxes, curves, around), dict(curves)
    waiting = []
    for id, size in sizes_of.items():
        label = label_box(curves[id], size)
        if near.cost(id, label, 0) or near.is_far(id, _words_box(label)):
            waiting.append(id)
        else:
            near.add_label(id, label)
    parts = PARTS[:: max(1, len(PARTS) // max(LEAST_PARTS, MOST_TRIED // (5 * max(1, len(waiting)))))]
    for id in waiting:
        found[id] = _move(id, curves[id], sizes_of[id], near, parts)
    crossed = {id: near.lines_in(id, _bounds(label_box(found[id], sizes_of[id]))) for id in waiting}
    return found, {id: lines for id, lines in crossed.items() if lines}


def label_box(curve: Curve, size: tuple[float, float]) -> Box:
    x, y = curve.label or curve.points[len(curve.points) // 2]
    return Box(x, y, *size)


def _words_box(label: Box) -> Box:
    """Return the box of the words, without the room for a flow number, which is often empty."""
    return Box(label.x - labels.FLOW_ROOM / 2, label.y, max(1.0, label.width - labels.FLOW_ROOM), label.height)


def _move(id: str, curve: Curve, size: tuple[float, float], near: _Neighbours, parts: Sequence[float]) -> Curve:
    """Take the cheapest place along the line. A place in the middle is preferred among equals."""
    best, least = label_box(curve, size), math.inf
    for cost, box in _candidates(near.traces[id], size, parts):
        cost += near.cost(id, box, least)
        if cost < least:
            best, least = box, cost
        if least < ON_LINE / 2:
            break
    near.add_label(id, best)
    return replace(curve, label=(best.x, best.y))


def _candidates(points: list[Point], size: tuple[float, float], parts: Sequence[float]) -> Iterator[tuple[float, Box]]:
    for order, part in enumerate(parts):
        x, y = points[round(part * (len(points) - 1))]
        middle = labels.FLOW_ROOM / 2  # of the words, from that of the label
        aside = size[0] / 2 + labels.LABEL_GAP - middle
        for extra, across, down in (
            (0, 0.0, 0.0),
            (1, aside, 0.0),
            (1, -aside, 0.0),
            (2, 0.0, size[1]),
            (2, 0.0, -size[1]),
        ):
            yield extra + order / 100, Box(x + middle + across, y + down, *size)


def trace(curve: Curve) -> list[Point]:
    """Return points of the curve, some ``STEP`` apart, from its start to its tip."""
    found = [curve.points[0]]
    for place in range(0, len(curve.points) - 3, 3):
        a, b, c, d = curve.points[place : place + 4]
        count = max(2, math.ceil((math.dist(a, b) + math.dist(b, c) + math.dist(c, d)) / STEP))
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = a, b, c, d
        found += [
            (p * ax + q * bx + r * cx + s * dx, p * ay + q * by + r * cy + s * dy)
            for p, q, r, s in _compute_weights(count)
        ]
    found.append(curve.tip)
    return found


@lru_cache(maxsize=64)
def _compute_weights(count: int) -> list[tuple[float, float, float, float]]:
    """Return how much each of the four points of a piece of curve counts, at ``count`` places along it."""
    found = []
    for number in range(1, count + 1):
        t = number / count
        u = 1 - t
        found.append((u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t))
    return found


class _Neighbours:
    """Finds what stands at a place, by a map of cells. Bounds are plain numbers there: a drawing with many labels to
    move compares a hundred thousand times."""

    def __init__(self, boxes: Mapping[str, Box], curves: Mapping[str, Curve], around: Collection[str]) -> None:
        around = frozenset(around)
        self._boxes: _Map[tuple[str, Bounds, bool, int]] = defaultdict(list)
        self._points: _Map[tuple[str, float, float]] = defaultdict(list)
        for id, box in boxes.items():
            bounds, is_around = _bounds(box), id in around
            for cell in _border_cells(bounds) if is_around else _cells(bounds):
                self._boxes[cell].append((id, bounds, is_around, ON_NODE))
        self.traces = {id: trace(curve) for id, curve in curves.items()}
        for id, points in self.traces.items():
            for x, y in points:
                self._points[int(x // CELL), int(y // CELL)].append((id, x, y))

    def add_label(self, id: str, box: Box) -> None:
        bounds = _bounds(box)
        for cell in _cells(bounds):
            self._boxes[cell].append((id, bounds, False, ON_LABEL))

    def is_far(self, id: str, box: Box) -> bool:
        """Return whether the label stands away from its own line."""
        left, right, top, bottom = _bounds(box)
        return all(
            math.hypot(max(left - x, 0, x - right), max(top - y, 0, y - bottom)) > FAR for x, y in self.traces[id]
        )

    def cost(self, id: str, box: Box, least: float = math.inf) -> float:
        """Return the cost of a place. Counting ends above ``least``: such a cost may be too low."""
        bounds = _bounds(box)
        cells = _cells(bounds)
        cost = self._add_covered(id, bounds, cells)
        if cost <= least:
            cost += ON_LINE * len(self.lines_in(id, bounds))
        return cost

    def _add_covered(self, id: str, bounds: Bounds, cells: Sequence[tuple[int, int]]) -> int:
        """Add up the costs of what a label covers: nodes, of those around others the border alone, and labels."""
        left, right, top, bottom = bounds
        found = {}
        for cell in cells:
            for other, (west, east, north, south), is_around, cost in self._boxes.get(cell, ()):
                if left < east and west < right and top < south and north < bottom and other != id:
                    within = west <= left and right <= east and north <= top and bottom <= south
                    if not (is_around and within):
                        found[other] = cost
        return sum(found.values())

    def lines_in(self, id: str, bounds: Bounds) -> set[str]:
        """Return the other lines that run through a label."""
        left, right, top, bottom = bounds[0] - 1, bounds[1] + 1, bounds[2] - 1, bounds[3] + 1
        return {
            other
            for cell in _cells(bounds)
            for other, x, y in self._points.get(cell, ())
            if left < x < right and top < y < bottom and other != id
        }


def _bounds(box: Box) -> Bounds:
    x, y, across, down = box.x, box.y, box.width / 2, box.height / 2
    return x - across, x + across, y - down, y + down


def _cells(bounds: Bounds) -> list[tuple[int, int]]:
    """Return the cells of the map that the bounds touch."""
    left, right, top, bottom = bounds
    downs = range(int(top // CELL), int(bottom // CELL) + 1)
    return [(across, down) for across in range(int(left // CELL), int(right // CELL) + 1) for down in downs]


def _border_cells(bounds: Bounds) -> list[tuple[int, int]]:
    """Return the cells that the border runs through: a label inside of a box is clear of it."""
    left, right, top, bottom = (int(each // CELL) for each in bounds)
    rows = {(across, down) for across in range(left, right + 1) for down in (top, bottom)}
    return [*(rows | {(across, down) for down in range(top, bottom + 1) for across in (left, right)})]
