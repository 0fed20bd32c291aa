"""Lines from a state to itself, where the state is drawn around others, or a queue stands beside it.

Graphviz lets such lines bulge with the height of the box, one around the other. There is room on its side: they are
put below each other there, small, each with its label. Beside a state that feeds a queue, they make room for the line
to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import sizes
from .block import Block
from .geometry import Box, Curve
from .labels import transition_lines
from .routes import Piece

REACH = 26.0  # how far the line goes out
TURN = 8.0  # half of the distance between its ends
HEAD = 8.0  # room for the arrow's head
AIR = 10.0  # between two
LIFT = 3.0  # between a label and a line below it
OVER = 29.0  # how far a label may stand out above its state: less than rows are apart


def stacked(block: Block, node: str, pieces: Iterable[Piece]) -> None:
    """Moves the node's lines to itself, if there is room for them all."""
    box = block.boxes[node]
    loops = [(piece, *_size(piece)) for piece in pieces if piece.tail == piece.head == node]
    y = box.top + sizes.NAME_LINE + 2 * sizes.HEADING_PAD + AIR
    if y + sum(height + AIR for _, _, height in loops) > box.bottom:
        return
    for piece, width, height in loops:
        block.curves[piece.wire.id] = loop(box, y + height / 2, width)
        y += height + AIR


def raised(block: Block, node: str, pieces: Iterable[Piece]) -> None:
    """Moves the node's lines to itself above the middle of its side, where the line to a queue leaves it.

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
    wire = piece.wire
    lines = transition_lines(wire.transition, wire.source) if wire.transition and wire.source else []
    width, height = sizes.label_size(lines)
    return width + sizes.LABEL_GAP, max(height, 2 * TURN)


def loop(box: Box, y: float, width: float, label: float | None = None) -> Curve:
    """Out of the right side at the height ``y``, round, and back; a label of this width stands beyond, at the height
    ``label`` if not at the same."""
    out = box.right + REACH
    points = ((box.right, y - TURN), (out, y - TURN), (out, y + TURN), (box.right + HEAD, y + TURN))
    return Curve(points, (box.right, y + TURN), (out + width / 2, y if label is None else label))
