"""DOT for a machine. Names of nodes are ids of ours; what users wrote stands in labels and tooltips only, escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import graphviz

from machines.diagrams.part_names import queue_id, start_id, state_id

from . import labels
from .labels import (
    Line,
    event_text,
    history_title,
    literal,
    literal_lines,
    literal_title,
    state_name,
    state_title,
    transition_kind,
    transition_lines,
    transition_title,
)
from .routes import Wire, feeds, has_start, wires
from .state_tree import Tree, main_line

if TYPE_CHECKING:
    from machines.engine.definitions import Outline, StateOutline

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
FLAT = {"newrank": "true"}
NESTED = {"compound": "true"}  # and the older ranking, which keeps clusters together
NODE = {"shape": "box", "style": "rounded", "fontname": "Helvetica", "fontsize": "12", "margin": "0.1,0.05"}
EDGE = {"fontname": "Courier", "fontsize": f"{LABEL_FONT:.3f}", "arrowsize": "0.7"}
CLUSTER = {"labeljust": "l", "labelloc": "t", "fontname": "Courier", "fontsize": f"{LABEL_FONT:.3f}"}
DOT = {"shape": "circle", "style": "filled", "fillcolor": "black", "fixedsize": "true", "label": ""}
HISTORY = {"shallow": "H", "deep": "H*"}


def dot(outline: Outline, **graph: str) -> str:
    """Write the Graphviz source of the diagram. ``graph`` overrides graph attributes."""
    return _Source(Tree(outline), graph).text


class _Source:
    """Writes the parts into the graph, each state's into the cluster of the state around it."""

    def __init__(self, tree: Tree, graph: dict[str, str]) -> None:
        self._tree = tree
        outline = tree.outline
        nested = any(tree.is_cluster(state) for state in outline.states)
        self._main = {name for line in main_line(tree) for name in line}
        self._beside = {queue: state for state, queue in reversed(feeds(tree))}
        attributes = GRAPH | (NESTED if nested else FLAT) | graph
        drawing = graphviz.Digraph(outline.id, graph_attr=attributes, node_attr=NODE, edge_attr=EDGE)
        drawing.attr("graph", tooltip=literal(outline.description or outline.id))
        if has_start(tree):
            _node(drawing, start_id(), "start", (2 * labels.START, 2 * labels.START), **DOT)
        self._inside(drawing, None)
        for wire in wires(tree):
            self._wire(drawing, wire)
        self.text = drawing.source

    def _inside(self, drawing: graphviz.Digraph, around: StateOutline | None) -> None:
        for state in self._tree.children(around):
            if state.type == "history":
                _history(drawing, state)
            elif self._tree.is_cluster(state):
                self._cluster(drawing, state)
            else:
                self._state(drawing, state)
            for queue, feeder in self._beside.items():
                if feeder is state:
                    self._queue(drawing, state, queue)

    def _cluster(self, drawing: graphviz.Digraph, state: StateOutline) -> None:
        lines = [*state_name(state), *(line.text for line in self._tree.details(state))]
        with drawing.subgraph(name=cluster_name(state.index)) as cluster:
            cluster.attr(
                **CLUSTER,
                label=literal_lines(lines),
                id=state_id(state.index),
                **{"class": state_class(state, self._tree)},
                style="rounded,dashed" if self._tree.is_region(state) else "rounded",
                tooltip=literal_title(state_title(state)),
            )
            if state.type != "parallel":
                size = (2 * labels.SMALL_START, 2 * labels.SMALL_START)
                _node(cluster, start_id(state.index), "start", size, **DOT)
            self._inside(cluster, state)

    def _state(self, drawing: graphviz.Digraph, state: StateOutline) -> None:
        name, details, around = state_name(state), self._tree.details(state), self._tree.parent(state)
        _node(
            drawing,
            state_id(state.index),
            state_class(state, self._tree),
            labels.state_size(name, details),
            label=literal_lines([*name, *(line.text for line in details)]),
            group=f"main-{around.index if around else 0}" if state.name in self._main else None,
            tooltip=literal_title(state_title(state)),
            **({"peripheries": "2"} if state.type == "final" else {}),
        )

    def _queue(self, drawing: graphviz.Digraph, state: StateOutline, queue: str) -> None:
        """Write a queue, which stands beside the first state that feeds it."""
        look = {"label": literal(queue), "shape": "cylinder", "tooltip": literal(f"queue {queue}")}
        _node(drawing, queue_id(queue), "queue", labels.queue_size(queue), **look)
        if not self._tree.is_cluster(state):
            _row(drawing, "same", [state_id(state.index), queue_id(queue)])

    def _wire(self, drawing: graphviz.Digraph, wire: Wire) -> None:
        tail, head = self._end(wire.tail), self._end(wire.head)
        cut = {} if tail.covers(head) or head.covers(tail) else {"ltail": tail.cluster, "lhead": head.cluster}
        attributes = {name: cluster for name, cluster in cut.items() if cluster}
        drawing.edge(tail.node, head.node, id=wire.id, **attributes, **self._looks(wire))

    def _end(self, node: str) -> _End:
        """Return the node of an end: Graphviz draws edges between nodes only, so a cluster is met at a node in it."""
        state = next((s for s in self._tree.outline.states if state_id(s.index) == node), None)
        if state is None or not self._tree.is_cluster(state):
            return _End(node)
        below = {state_id(inner.index) for inner in self._tree.below(state)}
        starts = {start_id(inner.index) for inner in (state, *self._tree.below(state))}
        return _End(self._door(state), cluster_name(state.index), frozenset({node} | below | starts))

    def _door(self, state: StateOutline) -> str:
        children = [child for child in self._tree.children(state) if child.type != "history"]
        if not children:
            return state_id(state.index)
        return self._door(children[len(children) // 2]) if state.type == "parallel" else start_id(state.index)

    def _looks(self, wire: Wire) -> dict[str, str]:
        if wire.kind == "feeds":
            assert wire.source is not None
            beside = self._beside[wire.queue] is wire.source and not self._tree.is_cluster(wire.source)
            tip = literal(f"{wire.source.name} feeds the queue {wire.queue}")
            return {"class": "feeds", "style": "dashed", "tooltip": tip} | ({} if beside else {"constraint": "false"})
        if wire.transition is None or wire.source is None:
            return {"class": wire.kind, "weight": "10"}
        transition, source = wire.transition, wire.source
        looks = {"class": f"transition {transition_kind(transition)}".strip()}
        looks["tooltip"] = literal_title(transition_title(transition, source))
        if wire.labelled:
            looks["label"] = _label(transition_lines(transition, source))
            looks["labeltooltip"] = literal(event_text(transition, source))
        return looks if transition.targets else looks | {"style": "dotted"}


@dataclass(frozen=True, slots=True)
class _End:
    """``inside``: the nodes of the cluster."""

    node: str
    cluster: str = ""
    inside: frozenset[str] = frozenset()

    def covers(self, other: _End) -> bool:
        return other.node in self.inside


def cluster_name(index: int) -> str:
    return f"cluster-{index}"


def state_class(state: StateOutline, tree: Tree) -> str:
    around = tree.parent(state)
    begins = state.name in (around.initial if around else (tree.outline.initial,))
    words = ["state", *([state.type] if state.type not in ("atomic", "history") else [])]
    words += ["region"] if tree.is_region(state) else ["initial"] if begins else []
    return " ".join([*words, *(["folded"] if tree.is_folded(state) else [])])


def _node(drawing: graphviz.Digraph, id: str, kind: str, size: tuple[float, float], **looks: str | None) -> None:
    width, height = size
    drawing.node(id, id=id, **{"class": kind}, width=inches(width), height=inches(height), **looks)


def _history(drawing: graphviz.Digraph, state: StateOutline) -> None:
    look = {"label": HISTORY[state.history], "shape": "circle", "fixedsize": "true"}
    size = (2 * labels.HISTORY, 2 * labels.HISTORY)
    _node(drawing, state_id(state.index), "history", size, **look, tooltip=literal_title(history_title(state)))


def _row(drawing: graphviz.Digraph, rank: str, nodes: Sequence[str]) -> None:
    if nodes:
        with drawing.subgraph() as row:
            row.attr(rank=rank)
            for node in nodes:
                row.node(node)


def _label(lines: Sequence[Line]) -> str:
    """Return the label: its first line is filled with spaces to the width the drawing needs."""
    width, _ = labels.label_size(lines)
    first, *rest = [line.text for line in lines]
    return literal_lines([first.ljust(math.ceil((width + labels.LABEL_GAP) / LABEL_COLUMN)), *rest])


def inches(points: float) -> str:
    return f"{points / POINTS:.4f}"
