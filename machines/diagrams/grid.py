"""Places without Graphviz: states in rows, straight lines between them. For definitions it cannot lay out in time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import sizes
from .geometry import Box, Curve, Layout, Point
from .labels import state_details, state_name
from .names import START, edge_id, feeds_id, queue_id, state_id
from .source import feeds

if TYPE_CHECKING:
    from machines.engine.definitions import Outline

GAP = 130.0
LOOP = 26.0


def grid(outline: Outline) -> Layout:
    """States in document order, row by row; queues in rows below them."""
    states = [(state_id(s.index), *sizes.state_size(state_name(s), state_details(s))) for s in outline.states]
    queues = [(queue_id(queue), *sizes.queue_size(queue)) for queue in outline.queues]
    boxes = _rows(states, top=GAP / 2)
    boxes |= _rows(queues, top=max((box.bottom for box in boxes.values()), default=0) + GAP)
    first = next((s for s in outline.states if s.name == outline.initial), None)
    curves = _curves(outline, boxes)
    if first is not None:
        below = boxes[state_id(first.index)]
        boxes[START] = Box(below.x, below.top - GAP / 2, 2 * sizes.START, 2 * sizes.START)
        curves[f"edge-{START}"] = _line(boxes[START], below)
    width = max((box.right for box in boxes.values()), default=0) + GAP
    height = max((box.bottom for box in boxes.values()), default=0) + GAP
    return Layout(width, height, boxes, curves)


def _rows(parts: list[tuple[str, float, float]], top: float) -> dict[str, Box]:
    if not parts:
        return {}
    across = max(1, math.ceil(math.sqrt(len(parts))))
    wide, high = (max(part[place] for part in parts) + GAP for place in (1, 2))
    return {
        id: Box((n % across + 0.5) * wide, top + (n // across + 0.5) * high, width, height)
        for n, (id, width, height) in enumerate(parts)
    }


def _curves(outline: Outline, boxes: dict[str, Box]) -> dict[str, Curve]:
    at = {state.name: boxes[state_id(state.index)] for state in outline.states}
    found = {feeds_id(s.index, queue): _line(at[s.name], boxes[queue_id(queue)]) for s, queue in feeds(outline)}
    for state in outline.states:
        for transition in state.transitions:
            source, target = at[state.name], at.get(transition.target or state.name, at[state.name])
            found[edge_id(transition.id)] = _loop(source) if source is target else _line(source, target)
    return found


def _line(source: Box, target: Box) -> Curve:
    start, tip = _border(source, target), _border(target, source)
    end = _between(start, tip, 0.97)
    points = (start, _between(start, end, 1 / 3), _between(start, end, 2 / 3), end)
    return Curve(points, tip, _between(start, tip, 0.5))


def _loop(box: Box) -> Curve:
    low, high, out = box.y + 8, box.y - 8, box.right + LOOP
    points = ((box.right, high), (out, high), (out, low), (box.right + 8, low))
    return Curve(points, (box.right, low), (out + LOOP, box.y))


def _border(box: Box, other: Box) -> Point:
    """Where the line between two centres leaves the first box."""
    dx, dy = other.x - box.x, other.y - box.y
    reach = max(abs(dx) / (box.width / 2), abs(dy) / (box.height / 2), 1e-9)
    return box.x + dx / reach, box.y + dy / reach


def _between(start: Point, end: Point, part: float) -> Point:
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part
