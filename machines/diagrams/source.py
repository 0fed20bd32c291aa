"""DOT for a machine. Names of nodes are ids of ours; what users wrote stands in labels and tooltips only, escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import graphviz

from . import sizes
from .labels import (
    Line,
    event_text,
    state_details,
    state_name,
    state_title,
    transition_kind,
    transition_lines,
    transition_title,
)
from .names import START, edge_id, feeds_id, queue_id, state_id
from .text import drawable

if TYPE_CHECKING:
    from machines.engine.definitions import Outline, StateOutline, TransitionOutline

BACKSLASH = "\N{REVERSE SOLIDUS OPERATOR}"
POINTS = 72  # to the inch, which is what Graphviz counts node sizes in
LINE_HEIGHT = 1.2  # of the font size: Graphviz's own
LABEL_FONT = sizes.SMALL_LINE / LINE_HEIGHT
LABEL_COLUMN = 0.6 * LABEL_FONT
GRAPH = {
    "rankdir": "TB",
    "bgcolor": "transparent",
    "pad": "0",
    "nodesep": "0.45",
    "ranksep": "0.42",
    "newrank": "true",
    "outputorder": "edgesfirst",
}
NODE = {"shape": "box", "style": "rounded", "fontname": "Helvetica", "fontsize": "12", "margin": "0.1,0.05"}
EDGE = {"fontname": "Courier", "fontsize": f"{LABEL_FONT:.3f}", "arrowsize": "0.7"}


def dot(outline: Outline, **graph: str) -> str:
    """Graphviz source of the diagram. ``graph`` overrides graph attributes."""
    drawing = graphviz.Digraph(outline.id, graph_attr=GRAPH | graph, node_attr=NODE, edge_attr=EDGE)
    drawing.attr("graph", tooltip=literal(outline.description or outline.id))
    _start(drawing, outline)
    main = main_line(outline)
    for state in outline.states:
        _state(drawing, state, state.name == outline.initial, "main" if state.name in main else None)
    _queues(drawing, outline)
    indexes = {state.name: state.index for state in outline.states}
    for state in outline.states:
        for transition in state.transitions:
            _transition(drawing, transition, state, indexes.get(transition.target, state.index))
    return drawing.source


def literal(text: str) -> str:
    """The text as a label that means itself: no escString escapes, no HTML-like label, no character entities."""
    return graphviz.escape(drawable(text).replace("&", "&amp;"))


def literal_lines(lines: Iterable[str]) -> str:
    r"""Lines set flush left; ``\l`` is how Graphviz ends such a line."""
    return graphviz.nohtml("".join(f"{literal(line)}\\l" for line in lines))


def _tooltip(title: str) -> str:
    """Graphviz expands escapes in tooltips twice, so a backslash survives in no spelling; its look-alike does."""
    title = title.replace("\\", BACKSLASH)
    return graphviz.nohtml("\\n".join(literal(line) for line in title.split("\n")))


def _start(drawing: graphviz.Digraph, outline: Outline) -> None:
    first = next((state for state in outline.states if state.name == outline.initial), None)
    if first is None:
        return
    size = _inches(2 * sizes.START)
    shape = {"shape": "circle", "style": "filled", "fillcolor": "black", "fixedsize": "true"}
    drawing.node(START, label="", id=START, **{"class": "start"}, width=size, height=size, **shape)
    drawing.edge(START, state_id(first.index), id=f"edge-{START}", **{"class": "start"}, weight="10")


def main_line(outline: Outline) -> list[str]:
    """The usual way through: from the initial state, each time the first transition to a new state that is no failure.

    Graphviz draws it straight.
    """
    states = {state.name: state for state in outline.states}
    line: dict[str, None] = {}
    name: str | None = outline.initial
    while name in states:
        line[name] = None
        onward = (t.target for t in states[name].transitions if "error" not in transition_kind(t))
        name = next((target for target in onward if target and target not in line), None)
    return list(line)


def _state(drawing: graphviz.Digraph, state: StateOutline, initial: bool, group: str | None) -> None:
    name, details = state_name(state), state_details(state)
    width, height = sizes.state_size(name, details)
    final = {"peripheries": "2"} if state.type == "final" else {}
    drawing.node(
        state_id(state.index),
        label=literal_lines([*name, *(line.text for line in details)]),
        id=state_id(state.index),
        **{"class": state_class(state, initial)},
        width=_inches(width),
        height=_inches(height),
        group=group,
        tooltip=_tooltip(state_title(state)),
        **final,
    )


def state_class(state: StateOutline, initial: bool) -> str:
    return " ".join(["state", *(["initial"] if initial else []), *(["final"] if state.type == "final" else [])])


def _queues(drawing: graphviz.Digraph, outline: Outline) -> None:
    for queue in outline.queues:
        width, height = sizes.queue_size(queue)
        drawing.node(
            queue_id(queue),
            label=literal(queue),
            id=queue_id(queue),
            **{"class": "queue"},
            shape="cylinder",
            width=_inches(width),
            height=_inches(height),
            tooltip=literal(f"queue {queue}"),
        )
    placed: set[str] = set()
    for state, queue in feeds(outline):
        _feed(drawing, state, queue, beside=queue not in placed)
        placed.add(queue)


def _feed(drawing: graphviz.Digraph, state: StateOutline, queue: str, beside: bool) -> None:
    """A queue stands beside the first state that feeds it."""
    if beside:
        with drawing.subgraph() as row:
            row.attr(rank="same")
            row.node(state_id(state.index))
            row.node(queue_id(queue))
    drawing.edge(
        state_id(state.index),
        queue_id(queue),
        id=feeds_id(state.index, queue),
        **{"class": "feeds"},
        style="dashed",
        constraint=None if beside else "false",
        tooltip=literal(f"{state.name} feeds the queue {queue}"),
    )


def feeds(outline: Outline) -> list[tuple[StateOutline, str]]:
    """Which states put work on which queues, in document order, each pair once."""
    pairs = [(state, queue) for state in outline.states for queue in _queues_of(state)]
    return list({(state.index, queue): (state, queue) for state, queue in pairs}.values())


def _queues_of(state: StateOutline) -> list[str]:
    return [*(invoke.queue for invoke in state.invokes), *state.enqueues]


def _transition(drawing: graphviz.Digraph, transition: TransitionOutline, source: StateOutline, target: int) -> None:
    drawing.edge(
        state_id(source.index),
        state_id(target),
        label=_label(transition_lines(transition, source)),
        id=edge_id(transition.id),
        **{"class": f"transition {transition_kind(transition)}".strip()},
        tooltip=_tooltip(transition_title(transition, source)),
        labeltooltip=literal(event_text(transition)),
        **({} if transition.target else {"style": "dotted"}),
    )


def _label(lines: Sequence[Line]) -> str:
    """The first line is filled with spaces to the width the drawing needs, which may be more than Graphviz thinks."""
    width, _ = sizes.label_size(lines)
    first, *rest = [line.text for line in lines]
    return literal_lines([first.ljust(math.ceil((width + sizes.LABEL_GAP) / LABEL_COLUMN)), *rest])


def _inches(points: float) -> str:
    return f"{points / POINTS:.4f}"
