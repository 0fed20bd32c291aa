"""DOT for other tools. Names of nodes are ids of ours; what users wrote stands in labels and tooltips only, escaped."""

from collections.abc import Iterable

import graphviz

from machines.engine.definitions import Outline, StateOutline

from .layout.labels import (
    HISTORIES,
    drawable,
    history_title,
    state_name,
    state_title,
    transition_lines,
    transition_title,
)
from .layout.routes import Routes, Wire, has_start
from .layout.state_tree import Tree
from .part_names import queue_id, start_id, state_id

BACKSLASH = "\N{REVERSE SOLIDUS OPERATOR}"
GRAPH = {"compound": "true", "fontname": "Helvetica", "fontsize": "12", "labeljust": "l"}
NODE = {"shape": "box", "style": "rounded", "fontname": "Helvetica", "fontsize": "12"}
EDGE = {"fontname": "Courier", "fontsize": "11", "arrowsize": "0.7"}
START = {"shape": "circle", "style": "filled", "fillcolor": "black", "label": "", "width": "0.15", "fixedsize": "true"}


def dot(outline: Outline) -> str:
    """Write the Graphviz source of a diagram."""
    graph = graphviz.Digraph(outline.id, graph_attr=GRAPH, node_attr=NODE, edge_attr=EDGE)
    _Writer(Tree(outline)).write(graph)
    return graph.source


class _Writer:
    """Writes each state into the cluster of the state around it. ``_clusters``: node -> the state that is drawn around
    others; ``_beside``: queue -> the first state that feeds it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._routes = Routes(tree)
        self._clusters = {state_id(one.index): one for one in tree.outline.states if tree.is_cluster(one)}
        self._beside = {queue: state for state, queue in reversed(self._routes.feeds)}

    def write(self, graph: graphviz.Digraph) -> None:
        if has_start(self._tree):
            graph.node(start_id(), **START)
        self._write_inside(graph, None)
        for wire in self._routes.wires:
            graph.edge(self._find_node(wire.tail), self._find_node(wire.head), **self._cut(wire), **self._look(wire))

    def _write_inside(self, graph: graphviz.Digraph, around: StateOutline | None) -> None:
        for state in self._tree.children(around):
            if self._tree.is_cluster(state):
                self._write_cluster(graph, state)
            else:
                graph.node(state_id(state.index), **self._describe(state))
            for queue, feeder in self._beside.items():
                if feeder is state:
                    graph.node(queue_id(queue), graphviz.nohtml(_escape(queue)), shape="cylinder")

    def _write_cluster(self, graph: graphviz.Digraph, state: StateOutline) -> None:
        with graph.subgraph(name=_name_cluster(state), graph_attr=self._describe(state)) as cluster:
            if state.type != "parallel":
                cluster.node(start_id(state.index), **START)
            self._write_inside(cluster, state)

    def _describe(self, state: StateOutline) -> dict[str, str]:
        if state.type == "history":
            return {"label": HISTORIES[state.history], "shape": "circle", "tooltip": _tip(history_title(state))}
        lines = [*state_name(state), *(line.text for line in self._tree.details(state))]
        style = "rounded,dashed" if self._tree.is_region(state) else "rounded"
        looks = {"label": _set_left(lines), "tooltip": _tip(state_title(state)), "style": style}
        return looks | ({"peripheries": "2"} if state.type == "final" else {})

    def _cut(self, wire: Wire) -> dict[str, str]:
        """Return where a line is cut. Graphviz draws between nodes only: a cluster is met at a node in it, and the line
        is cut at its border unless it leads further inside."""
        is_around = self._routes.is_around
        if wire.tail == wire.head or is_around(wire.tail, wire.head) or is_around(wire.head, wire.tail):
            return {}
        ends = {"ltail": self._clusters.get(wire.tail), "lhead": self._clusters.get(wire.head)}
        return {key: _name_cluster(state) for key, state in ends.items() if state is not None}

    def _find_node(self, end: str) -> str:
        state = self._clusters.get(end)
        if state is None:
            return end
        if state.type != "parallel":
            return start_id(state.index)
        regions = [child for child in self._tree.children(state) if child.type != "history"]
        return self._find_node(state_id(regions[len(regions) // 2].index))

    def _look(self, wire: Wire) -> dict[str, str]:
        if wire.kind == "feeds":
            return {"style": "dashed"}
        if wire.transition is None or wire.source is None:
            return {"weight": "10"}
        looks = {"tooltip": _tip(transition_title(wire.transition, wire.source))}
        if wire.labelled:
            looks["label"] = _set_left(line.text for line in transition_lines(wire.transition, wire.source))
        return looks if wire.transition.targets else looks | {"style": "dotted"}


def _name_cluster(state: StateOutline) -> str:
    return f"cluster-{state.index}"


def _escape(text: str) -> str:
    """Return the text as a label that means itself: no escapes of Graphviz, and no entities."""
    return graphviz.escape(drawable(text).replace("&", "&amp;"))


def _set_left(lines: Iterable[str]) -> str:
    r"""Return lines set flush left; ``\l`` is how Graphviz ends such a line."""
    return graphviz.nohtml("".join(rf"{_escape(line)}\l" for line in lines))


def _tip(title: str) -> str:
    """Escape a tooltip. Graphviz expands escapes in them twice, so a backslash is replaced by its look-alike."""
    return graphviz.nohtml(r"\n".join(_escape(line) for line in title.replace("\\", BACKSLASH).split("\n")))
