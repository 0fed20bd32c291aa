"""The SVG of a machine: Graphviz's places, our parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import sizes
from .edges import draw_feed, draw_start_edge, draw_transition
from .elements import Element, element, serialized, title
from .geometry import Layout
from .layout import lay_out
from .names import START, edge_id, feeds_id, queue_id, state_id
from .nodes import draw_queue, draw_start, draw_state
from .source import dot, feeds
from .text import drawable

if TYPE_CHECKING:
    from machines.engine.definitions import Outline

DRAWING = 1
"""Number of the way diagrams are drawn; kept with each cached SVG, so that a new way redraws the old ones."""

SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Diagram:
    """``svg`` starts at its ``<svg`` tag and can be put into a page as it is; ``dot`` is source for other tools."""

    svg: str
    dot: str


def draw(outline: Outline) -> Diagram:
    """Lays the machine out and draws it. Takes milliseconds; a definition Graphviz cannot place, some seconds."""
    layout = lay_out(outline)
    root = _root(outline, layout)
    place = f"translate({sizes.MARGIN:g} {sizes.MARGIN:g})"
    _edges(element(root, "g", class_="edges", transform=place), outline, layout)
    _nodes(element(root, "g", class_="nodes", transform=place), outline, layout)
    return Diagram(serialized(root), dot(outline))


def _root(outline: Outline, layout: Layout) -> Element:
    width, height = (round(size + 2 * sizes.MARGIN) for size in (layout.width, layout.height))
    root = element(
        None,
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        class_="sb-diagram",
        role="group",
        aria_label=drawable(f"Diagram of {outline.id}"),
        data_machine=outline.id,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family=SANS,
    )
    title(root, outline.id)
    return root


def _edges(group: Element, outline: Outline, layout: Layout) -> None:
    if (start := layout.curves.get(f"edge-{START}")) is not None:
        draw_start_edge(group, start)
    for state, queue in feeds(outline):
        if (path := layout.curves.get(feeds_id(state.index, queue))) is not None:
            draw_feed(group, state, queue, path)
    for state in outline.states:
        for transition in state.transitions:
            if (path := layout.curves.get(edge_id(transition.id))) is not None:
                draw_transition(group, transition, state, path)


def _nodes(group: Element, outline: Outline, layout: Layout) -> None:
    if (start := layout.boxes.get(START)) is not None:
        draw_start(group, start)
    for state in outline.states:
        draw_state(group, state, layout.boxes[state_id(state.index)], state.name == outline.initial)
    for queue in outline.queues:
        draw_queue(group, queue, layout.boxes[queue_id(queue)])
