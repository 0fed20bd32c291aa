"""From a machine to places: each level by itself, the innermost first, and then put into one another.

Graphviz does not lay nested states out well, but what stands in one state it does. Graphviz gets a few tries for a
level, each asking less of it; a grid is what remains.
"""

import math
from collections.abc import Mapping
from itertools import pairwise

from machines.diagrams.part_names import START, queue_id, start_id, state_id

from . import labels
from .curves import REACH, Block, Box, Curve, Layout, Point, between, join, loop, raise_loops, stack, touching
from .graphviz import Answer, AnswerCache, Cell, LayoutFailed, Sketch, graphviz_host, read
from .label_places import place_labels
from .labels import state_name
from .routes import Level, Piece, Routes, port_id
from .state_tree import Tree, main_line

FAST = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1", "splines": "line"}
SIDEWAYS = FAST | {"rankdir": "LR", "nodesep": "0.1"}
BILLION = 10**9
TRIES: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 12 * BILLION // 10),
    (FAST, 4 * BILLION),
    (SIDEWAYS, 2 * BILLION),
)  # graph attributes, fuel
FUEL = sum(fuel for _, fuel in TRIES)  # for all levels together
ANSWERS = AnswerCache(room=4 << 20)  # of this process
TOO_MANY = 1500  # transitions; beyond this no try has ever succeeded
GAP = 130.0
ROW = 40.0  # the same for marks and ports
POINT = Cell(1, 1)


def lay_out(tree: Tree, fuel: int = FUEL) -> Layout:
    """Place for every part. Milliseconds for most definitions, and at most two or three seconds.

    ``fuel``: instructions that Graphviz may run for it in all; with too few the result is a grid.
    """
    return _Levels(tree, fuel).layout()


class _Levels:
    def __init__(self, tree: Tree, fuel: int) -> None:
        self._tree = tree
        self._routes = Routes(tree)
        lines = main_line(tree)
        self._main = {name for line in lines for name in line}
        ids = {state.name: state_id(state.index) for state in tree.outline.states}
        self._after = {name: ids[before] for line in lines for before, name in pairwise(line)}
        self._beside = {queue_id(queue): state for state, queue in reversed(self._routes.feeds)}
        self._states = {state_id(state.index): state for state in tree.outline.states}
        self._upwards: dict[str, bool] = {}
        self._blocks: dict[Level, Block] = {}
        transitions = sum(len(state.transitions) for state in tree.outline.states)
        self._fuel = fuel if transitions <= TOO_MANY else 0

    def layout(self) -> Layout:
        for level in (None, *(state.name for state in self._tree.outline.states if self._tree.is_cluster(state))):
            self._direct(level)
        block = self._block(None)
        boxes = dict(block.boxes)
        pieces: dict[tuple[Level, str], Curve] = {(None, id): curve for id, curve in block.curves.items()}
        for state in self._tree.outline.states:  # those around others come first
            if self._tree.is_cluster(state):
                frame = boxes[state_id(state.index)]
                inside = self._blocks[state.name].shift(frame.left, frame.top)
                boxes |= inside.boxes
                pieces |= {(state.name, id): curve for id, curve in inside.curves.items()}
        curves = {route.wire.id: join(self._tree, route, pieces, boxes) for route in self._routes.all}
        drawn = {id: curve for id, curve in curves.items() if curve}
        lines = self._routes.wires
        around = [state_id(state.index) for state in self._tree.outline.states if self._tree.is_cluster(state)]
        placed, crossed = place_labels(lines, boxes, touching(self._routes, boxes, drawn), around)
        return Layout(block.width, block.height, boxes, placed, crossed, lines)

    # ---- which way lines go: decides on which side of a border their ports are

    def _direct(self, level: Level) -> None:
        """Direct up or down the lines that cross from state to state in this level."""
        crossing = self._routes.crossing(level)
        unknown = [route for route in crossing if not route.heading and len(route.pieces) > 1]
        heights = self._heights(level) if unknown else {}
        for route in crossing:
            piece = route.pieces[route.top]
            level_with = heights.get(piece.tail, 0) > heights.get(piece.head, 0)
            self._upwards[route.wire.id] = route.heading == "head" or (not route.heading and level_with)

    def _heights(self, level: Level) -> dict[str, float]:
        """Return how far down each node of the level will be: its row does not depend on how large things are."""
        cells = {node: Cell(36, 18, beside=self._find_neighbour(node)) for node in self._routes.nodes(level)}
        first, last = self._rows(level)
        block = self._draw(Sketch(cells, self._routes.pieces(level), first, last, self._regions(level)))
        return {node: box.y for node, box in block.boxes.items()}

    def _rows(self, level: Level) -> tuple[list[str], list[str]]:
        """Return ports of the level in its topmost row, with its start mark, and in its bottommost."""
        around = self._tree.state(level)
        starts = [start_id(around.index)] if around is not None and around.type not in ("parallel", "group") else []
        rows: tuple[list[str], list[str]] = (starts, [])
        for piece in self._routes.pieces(level):
            if piece.tail_port or piece.head_port:
                is_low = self._upwards.get(piece.wire.id, False) is piece.tail_port
                rows[is_low].append(port_id(piece.wire))
        return rows

    # ---- places, from the inside out

    def _block(self, level: Level) -> Block:
        inside = [state for state in self._tree.children(self._tree.state(level)) if self._tree.is_cluster(state)]
        for state in inside:
            self._blocks[state.name] = self._block(state.name)
        regions = [state for state in inside if self._tree.is_region(state)]
        tallest = max((self._blocks[state.name].height for state in regions), default=0)
        for state in regions:
            self._blocks[state.name].height = tallest
        cells = {node: self._cell(node) for node in self._routes.nodes(level)}
        first, last = self._rows(level)
        sketch = Sketch(cells, self._routes.pieces(level), first, last, self._regions(level))
        block = self._draw(sketch)
        for state in inside:
            stack(block, state_id(state.index), sketch.pieces)
        for cell in cells.values():
            if cell.beside:
                raise_loops(block, cell.beside, sketch.pieces)
        return self._add_frame(level, block, [port_id(piece.wire) for piece in sketch.pieces])

    def _cell(self, node: str) -> Cell:
        state = self._states.get(node)
        if state is None:
            return self._mark(node)
        if state.type == "history":
            return Cell(2 * labels.HISTORY, 2 * labels.HISTORY)
        line = {"group": "main" if state.name in self._main else "", "after": self._after.get(state.name, "")}
        if not self._tree.is_cluster(state):
            folded = self._tree.is_folded(state)
            width, height = labels.state_size(state_name(state), self._tree.details(state), grip=folded)
            stack = labels.STACK if folded else 0
            return Cell(width + stack, height + stack, **line)
        block = self._blocks[state.name]
        return Cell(block.width, block.height, block.gates, **line)

    def _mark(self, node: str) -> Cell:
        if node in self._beside:
            return Cell(*labels.queue_size(node.removeprefix(queue_id(""))), beside=self._find_neighbour(node))
        radius = labels.START if node == start_id() else labels.SMALL_START
        return Cell(2 * radius, 2 * radius)

    def _find_neighbour(self, node: str) -> str:
        """Return the state a queue stands beside; a state with states in it is too large for that."""
        state = self._beside.get(node)
        return state_id(state.index) if state is not None and not self._tree.is_cluster(state) else ""

    def _regions(self, level: Level) -> list[str]:
        around = self._tree.state(level)
        children = self._tree.children(around) if around is not None else []
        return [state_id(child.index) for child in children if self._tree.is_region(child)]

    def _add_frame(self, level: Level, block: Block, ports: list[str]) -> Block:
        """Add the state's border and heading, and its ports in the border."""
        state = self._tree.state(level)
        if state is None:
            return block
        wide, high = labels.heading_size(state_name(state), self._tree.details(state))
        width = max(wide, block.width + 2 * labels.CLUSTER_PAD)
        framed = block.shift((width - block.width) / 2, high + labels.CLUSTER_PAD)
        framed.width, framed.height = width, block.height + high + 2 * labels.CLUSTER_PAD
        middle = framed.height / 2 + high / 2
        framed.gates = {id: (box.x, box.y > middle) for id, box in framed.boxes.items() if id in ports}
        return framed

    def _draw(self, sketch: Sketch) -> Block:
        has_ports = any(cell.gates for cell in sketch.cells.values()) or sketch.last or len(sketch.first) > 1
        for attributes, fuel in TRIES[:2] if has_ports else TRIES:
            try:
                block = read(self._run(sketch.dot(attributes), min(fuel, self._fuel)), sketch)
            except LayoutFailed:
                continue
            return _add_missing_lines(block, sketch)
        return grid(sketch)

    def _run(self, source: str, fuel: int) -> bytes:
        if fuel <= 0:
            raise LayoutFailed("this machine has had all the work it may ask for")
        if (found := ANSWERS.get(source, fuel)) is not None:
            self._fuel -= found.fuel
            return found.text
        host = graphviz_host()
        try:
            text = host.lay_out(source, "json0", fuel)
        finally:
            self._fuel -= host.used
        ANSWERS.put(source, Answer(text, host.used))
        return text


def _add_missing_lines(block: Block, sketch: Sketch) -> Block:
    """Add a line that Graphviz forgot, as it does now and then between nodes that have to stand in one row."""
    for piece in sketch.pieces:
        if piece.wire.id not in block.curves:
            block.curves[piece.wire.id] = straight(sketch, piece, block.boxes)
    return block


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
    return _add_missing_lines(block, sketch)


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
