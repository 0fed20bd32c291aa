"""DOT for other tools. Names of nodes are ids of ours; what users wrote stands in labels and tooltips only, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .layout.graphviz import write_attributes
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

if TYPE_CHECKING:
    from machines.engine.definitions import Outline, StateOutline

BACKSLASH = "\N{REVERSE SOLIDUS OPERATOR}"
HEAD = (
    'compound="true" fontname="Helvetica" fontsize="12" labeljust="l"',
    'node [shape="box" style="rounded" fontname="Helvetica" fontsize="12"]',
    'edge [fontname="Courier" fontsize="11" arrowsize="0.7"]',
)
START = {"shape": "circle", "style": "filled", "fillcolor": "black", "label": "", "width": "0.15", "fixedsize": "true"}


def dot(outline: Outline) -> str:
    """Write the Graphviz source of a diagram."""
    return "\n".join([f"digraph {_quote(outline.id)} {{", *HEAD, *_Writer(Tree(outline)).lines(), "}", ""])


class _Writer:
    """Writes each state into the cluster of the state around it. ``_clusters``: node -> the state that is drawn around
    others; ``_beside``: queue -> the first state that feeds it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._routes = Routes(tree)
        self._clusters = {state_id(one.index): one for one in tree.outline.states if tree.is_cluster(one)}
        self._beside = {queue: state for state, queue in reversed(self._routes.feeds)}

    def lines(self) -> Iterator[str]:
        if has_start(self._tree):
            yield _node(start_id(), START)
        yield from self._inside(None)
        yield from map(self._edge, self._routes.wires)

    def _inside(self, around: StateOutline | None) -> Iterator[str]:
        for state in self._tree.children(around):
            if self._tree.is_cluster(state):
                yield from self._cluster(state)
            else:
                yield _node(state_id(state.index), self._describe(state))
            for queue, feeder in self._beside.items():
                if feeder is state:
                    yield _node(queue_id(queue), {"label": _escape(queue), "shape": "cylinder"})

    def _cluster(self, state: StateOutline) -> Iterator[str]:
        yield f"subgraph {_quote(_name_cluster(state))} {{"
        yield from (f'{name}="{value}"' for name, value in self._describe(state).items())
        if state.type != "parallel":
            yield _node(start_id(state.index), START)
        yield from self._inside(state)
        yield "}"

    def _describe(self, state: StateOutline) -> dict[str, str]:
        if state.type == "history":
            return {"label": HISTORIES[state.history], "shape": "circle", "tooltip": _tip(history_title(state))}
        lines = [*state_name(state), *(line.text for line in self._tree.details(state))]
        style = "rounded,dashed" if self._tree.is_region(state) else "rounded"
        looks = {"label": _set_left(lines), "tooltip": _tip(state_title(state)), "style": style}
        return looks | ({"peripheries": "2"} if state.type == "final" else {})

    def _edge(self, wire: Wire) -> str:
        """Write a line. Graphviz draws between nodes only: a cluster is met at a node in it, and the line is cut at its
        border unless it leads further inside."""
        looks, is_around = self._describe_wire(wire), self._routes.is_around
        inside = wire.tail == wire.head or is_around(wire.tail, wire.head) or is_around(wire.head, wire.tail)
        if not inside:
            ends = {"ltail": self._clusters.get(wire.tail), "lhead": self._clusters.get(wire.head)}
            looks |= {key: _name_cluster(state) for key, state in ends.items() if state is not None}
        return f"{self._find_node(wire.tail)} -> {self._find_node(wire.head)} {write_attributes(looks)}"

    def _find_node(self, end: str) -> str:
        state = self._clusters.get(end)
        if state is None:
            return _quote(end)
        if state.type != "parallel":
            return _quote(start_id(state.index))
        regions = [child for child in self._tree.children(state) if child.type != "history"]
        return self._find_node(state_id(regions[len(regions) // 2].index))

    def _describe_wire(self, wire: Wire) -> dict[str, str]:
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


def _node(id: str, looks: dict[str, str]) -> str:
    return f"{_quote(id)} {write_attributes(looks)}"


def _quote(id: str) -> str:
    return f'"{id}"'


def _escape(text: str) -> str:
    """Return the text as a label that means itself: no escapes of Graphviz, and no entities."""
    return drawable(text).replace("\\", r"\\").replace('"', r"\"").replace("&", "&amp;")


def _set_left(lines: Iterable[str]) -> str:
    r"""Return lines set flush left; ``\l`` is how Graphviz ends such a line."""
    return "".join(rf"{_escape(line)}\l" for line in lines)


def _tip(title: str) -> str:
    """Escape a tooltip. Graphviz expands escapes in them twice, so a backslash is replaced by its look-alike."""
    return r"\n".join(_escape(line) for line in title.replace("\\", BACKSLASH).split("\n"))
