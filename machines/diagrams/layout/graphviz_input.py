"""DOT for one level: boxes of known size and lines between them. It holds nothing a user wrote.

Graphviz only gets told how much room things take. A state with states in it is a record: fields of just the right
width put its ports where the lines inside reach its border.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import graphviz

from . import sizes
from .dot import EDGE, GRAPH, LABEL_COLUMN, inches
from .labels import transition_lines
from .routes import Piece, port_id

NODE = {"shape": "box", "label": "", "fixedsize": "true"}
FIELD_FONT = 5.0
FIELD = 0.6 * FIELD_FONT  # width of one letter: how finely a port can be placed
RECORD = {"shape": "record", "margin": "0", "fontname": "Courier", "fontsize": f"{FIELD_FONT:g}"}
PORT = {"shape": "point", "width": "0.01", "height": "0.01"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A node. ``gates``: port -> (how far from its left edge, whether at its bottom); ``beside``: a queue stands in
    the same row as this other node; ``group``: nodes of one group are drawn in a straight line."""

    width: float
    height: float
    gates: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    beside: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Sketch:
    """``first`` and ``last``: ports of the level itself, and its start mark, in the topmost and bottommost row.
    ``abreast``: nodes that stand in one row in this order."""

    cells: Mapping[str, Cell]
    pieces: Sequence[Piece]
    first: Sequence[str] = ()
    last: Sequence[str] = ()
    abreast: Sequence[str] = ()

    def dot(self, attributes: Mapping[str, str]) -> str:
        drawing = graphviz.Digraph(graph_attr=GRAPH | dict(attributes), node_attr=NODE, edge_attr=EDGE)
        for id, cell in self.cells.items():
            drawing.node(id, id=id, **_looks(cell))
        for id in (*self.first, *self.last):
            if id not in self.cells:
                drawing.node(id, id=id, **PORT)
        _row(drawing, "min", self.first)
        _row(drawing, "max", self.last)
        _row(drawing, "same", self.abreast)
        for left, right in pairwise(self.abreast):
            drawing.edge(left, right, style="invis")
        for id, cell in self.cells.items():
            if cell.beside:
                _row(drawing, "same", [cell.beside, id])
        for piece in self.pieces:
            drawing.edge(
                self._end(piece.tail, piece, piece.tail_gate),
                self._end(piece.head, piece, piece.head_gate),
                **self._line(piece),
            )
        return drawing.source

    def _end(self, node: str, piece: Piece, gate: bool) -> str:
        if not gate:
            return node
        port = port_id(piece.wire)
        gates = self.cells[node].gates
        return f"{node}:{port}:{'s' if gates[port][1] else 'n'}" if port in gates else node

    def _stands_beside(self, node: str) -> str:
        return self.cells[node].beside if node in self.cells else ""

    def _line(self, piece: Piece) -> dict[str, str]:
        wire = piece.wire
        line = {"id": wire.id} | ({} if piece.is_last and not piece.head_port else {"arrowhead": "none"})
        if wire.kind == "start" and piece.is_first:
            line["weight"] = "10"
        if wire.kind == "feeds" and self._stands_beside(piece.head) not in ("", piece.tail):
            line["constraint"] = "false"
        if piece.labelled and wire.transition is not None and wire.source is not None:
            width, height = sizes.label_size(transition_lines(wire.transition, wire.source))
            line["label"] = _blank(width + sizes.LABEL_GAP, round(height / sizes.SMALL_LINE))
        return line


def _looks(cell: Cell) -> dict[str, str]:
    looks = {"width": inches(cell.width), "height": inches(cell.height)}
    if cell.group:
        looks["group"] = cell.group
    return looks | RECORD | {"label": _record(cell)} if cell.gates else looks


def _record(cell: Cell) -> str:
    """Three rows: the gates at the top, nothing, the gates at the bottom."""
    top, bottom = ({port: x for port, (x, low) in cell.gates.items() if low is side} for side in (False, True))
    return f"{{{_fields(cell.width, top)}|x|{_fields(cell.width, bottom)}}}"


def _fields(width: float, gates: Mapping[str, float]) -> str:
    fields: list[str] = []
    used = 0
    for port, x in sorted(gates.items(), key=lambda gate: gate[1]):
        before = max(0, round(x / FIELD - 0.5) - used)
        fields += [*(["x" * before] if before else []), f"<{port}>x"]
        used += before + 1
    rest = max(0, round(width / FIELD) - used)
    return f"{{{'|'.join([*fields, *(['x' * rest] if rest or not fields else [])])}}}"


def _blank(width: float, lines: int) -> str:
    return "x" * math.ceil(width / LABEL_COLUMN) + "\\lx" * (lines - 1) + "\\l"


def _row(drawing: graphviz.Digraph, rank: str, nodes: Iterable[str]) -> None:
    if nodes:
        with drawing.subgraph() as row:
            row.attr(rank=rank)
            for node in nodes:
                row.node(node)
