"""Places without Graphviz: nodes in rows, straight lines between them. For levels it cannot lay out in time."""

from __future__ import annotations

import math
from collections.abc import Mapping

from machines.diagrams.part_names import START

from .curves import REACH, loop
from .geometry import Block, Box, Curve, Point, between
from .graphviz_input import Cell, Sketch
from .routes import Piece, port_id

GAP = 130.0
ROW = 40.0  # the same for marks and ports


def grid(sketch: Sketch) -> Block:
    """Place nodes in document order, row by row; start marks and ports in rows of their own above and below."""
    cells = sketch.cells
    starts = {id: cell for id, cell in cells.items() if id.startswith(START)}
    queues = {id: cell for id, cell in cells.items() if id.startswith("queue-")}
    states = {id: cell for id, cell in cells.items() if id not in starts | queues}
    block = Block(0, 0)
    _rows(block, {id: cells.get(id, POINT) for id in (*starts, *sketch.first)}, abreast=True)
    _rows(block, states)
    _rows(block, queues)
    _rows(block, dict.fromkeys(sketch.last, POINT), abreast=True)
    for piece in sketch.pieces:
        block.curves[piece.wire.id] = straight(sketch, piece, block.boxes)
    return block


POINT = Cell(1, 1)


def _rows(block: Block, cells: Mapping[str, Cell], *, abreast: bool = False) -> None:
    """Put the cells below what is there, each in the middle of a place as large as the largest of them."""
    if not cells:
        return
    across = len(cells) if abreast else math.ceil(math.sqrt(len(cells)))
    wide = max(cell.width for cell in cells.values()) + (ROW if abreast else GAP)
    high = max(cell.height for cell in cells.values()) + (ROW if abreast else GAP)
    for number, (id, cell) in enumerate(cells.items()):
        x, y = (number % across + 0.5) * wide, block.height + (number // across + 0.5) * high
        block.boxes[id] = Box(x, y, cell.width, cell.height)
    block.width = max(block.width, min(across, len(cells)) * wide)
    block.height += math.ceil(len(cells) / across) * high


def straight(sketch: Sketch, piece: Piece, boxes: Mapping[str, Box]) -> Curve:
    """Draw a line from border to border, through whatever stands in between."""
    source = _gate(sketch, piece, piece.tail, piece.tail_gate, boxes)
    target = _gate(sketch, piece, piece.head, piece.head_gate, boxes)
    return loop(source, source.y, 2 * REACH) if piece.tail == piece.head else _line(source, target)


def _gate(sketch: Sketch, piece: Piece, node: str, gate: bool, boxes: Mapping[str, Box]) -> Box:
    """Return the node, or the place in its border where the line passes."""
    box = boxes[node]
    if not gate or port_id(piece.wire) not in sketch.cells[node].gates:
        return box
    x, low = sketch.cells[node].gates[port_id(piece.wire)]
    return Box(box.left + x, box.bottom if low else box.top, 1, 1)


def _line(source: Box, target: Box) -> Curve:
    start, tip = _border(source, target), _border(target, source)
    end = between(start, tip, 0.97)
    points = (start, between(start, end, 1 / 3), between(start, end, 2 / 3), end)
    return Curve(points, tip, between(start, tip, 0.5))


def _border(box: Box, other: Box) -> Point:
    """Return where the line between two centres leaves the first box."""
    dx, dy = other.x - box.x, other.y - box.y
    reach = max(abs(dx) / (box.width / 2), abs(dy) / (box.height / 2), 1e-9)
    return box.x + dx / reach, box.y + dy / reach
