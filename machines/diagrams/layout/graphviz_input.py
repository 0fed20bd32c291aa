"""DOT for one level: boxes of known size and lines between them. It holds nothing a user wrote.

Graphviz only gets the room that things take. A state with states in it is a record: fields of just the right
width put its ports where the lines inside reach its border.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from . import sizes
from .dot import EDGE, GRAPH, LABEL_COLUMN, inches
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


@dataclass(frozen=True)
class Sketch:
    """``first`` and ``last``: ports of the level itself, and its start mark, in the topmost and bottommost row.
    ``abreast``: nodes that stand in one row in this order."""

    cells: Mapping[str, Cell]
    pieces: Sequence[Piece]
    first: Sequence[str] = ()
    last: Sequence[str] = ()
    abreast: Sequence[str] = ()

    def dot(self, attributes: Mapping[str, str]) -> str:
        """Write DOT with the parts numbered in their order, so that levels of equal shape have equal source."""
        names = self.names
        lines = [
            f"graph {_write_attributes(GRAPH | dict(attributes))}",
            f"node {_write_attributes(NODE)}",
            f"edge {_write_attributes(EDGE)}",
        ]
        lines += [f"{names[id]} {_write_attributes(_looks(cell, self._ports))}" for id, cell in self.cells.items()]
        lines += [f"{names[id]} {_write_attributes(PORT)}" for id in (*self.first, *self.last) if id not in self.cells]
        lines += _row("min", [names[id] for id in self.first])
        lines += _row("max", [names[id] for id in self.last])
        lines += _row("same", [names[id] for id in self.abreast])
        lines += [f"{names[left]} -> {names[right]} [style=invis]" for left, right in pairwise(self.abreast)]
        for id, cell in self.cells.items():
            if cell.beside:
                lines += _row("same", [names[cell.beside], names[id]])
        for number, piece in enumerate(self.pieces):
            tail = self._end(piece.tail, piece, piece.tail_gate)
            head = self._end(piece.head, piece, piece.head_gate)
            lines.append(f"{tail} -> {head} {_write_attributes({'id': str(number)} | self._line(piece))}")
        return "\n".join(["digraph {", *lines, "}", ""])

    @cached_property
    def names(self) -> dict[str, str]:
        """Node or port -> its name in DOT."""
        nodes = dict.fromkeys((*self.cells, *self.first, *self.last))
        return {node: f"n{number}" for number, node in enumerate(nodes)}

    @cached_property
    def _ports(self) -> dict[str, str]:
        """Port in the border of a node -> its name in DOT."""
        return {port_id(piece.wire): f"p{number}" for number, piece in enumerate(self.pieces)}

    def _end(self, node: str, piece: Piece, gate: bool) -> str:
        name = self.names[node]
        if not gate:
            return name
        port = port_id(piece.wire)
        gates = self.cells[node].gates
        return f"{name}:{self._ports[port]}:{'s' if gates[port][1] else 'n'}" if port in gates else name

    def _stands_beside(self, node: str) -> str:
        return self.cells[node].beside if node in self.cells else ""

    def _line(self, piece: Piece) -> dict[str, str]:
        wire = piece.wire
        line = {} if piece.is_last and not piece.head_port else {"arrowhead": "none"}
        if wire.kind == "start" and piece.is_first:
            line["weight"] = "10"
        if wire.kind == "feeds" and self._stands_beside(piece.head) not in ("", piece.tail):
            line["constraint"] = "false"
        if piece.labelled and wire.transition is not None:
            width, height = wire.size
            line["label"] = _blank(width + sizes.LABEL_GAP, round(height / sizes.SMALL_LINE))
        return line


def _looks(cell: Cell, ports: Mapping[str, str]) -> dict[str, str]:
    looks = {"width": inches(cell.width), "height": inches(cell.height)}
    if cell.group:
        looks["group"] = cell.group
    return looks | RECORD | {"label": _record(cell, ports)} if cell.gates else looks


def _record(cell: Cell, ports: Mapping[str, str]) -> str:
    """Write three rows: the gates at the top, nothing, the gates at the bottom."""
    top, bottom = (
        {ports.get(port, port): x for port, (x, low) in cell.gates.items() if low is side} for side in (False, True)
    )
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


def _row(rank: str, names: Sequence[str]) -> list[str]:
    return [f"{{ rank={rank} {' '.join(names)} }}"] if names else []


def _write_attributes(attributes: Mapping[str, str]) -> str:
    """Write attributes; no value holds a quote or what a user wrote."""
    return "[" + " ".join([f'{name}="{value}"' for name, value in attributes.items()]) + "]"
