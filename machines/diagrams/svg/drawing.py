"""The SVG of a machine: Graphviz's places, our parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from machines.diagrams.layout import sizes
from machines.diagrams.layout.dot import dot
from machines.diagrams.layout.folding import fold
from machines.diagrams.layout.levels import FUEL, lay_out
from machines.diagrams.layout.routes import Wire
from machines.diagrams.layout.state_tree import Tree
from machines.diagrams.layout.text import drawable
from machines.diagrams.part_names import queue_id, start_id, state_id

from .clusters import draw_cluster
from .controls import draw_controls
from .edges import draw_feed, draw_plain, draw_transition
from .elements import Element, element, serialize, title
from .nodes import draw_history, draw_queue, draw_start, draw_state

if TYPE_CHECKING:
    from machines.engine.definitions import Outline

DRAWING = 6
"""Number of the way diagrams are drawn; kept with each cached SVG, so that a new way redraws the old ones."""

FOLDED_FUEL = FUEL // 4  # a drawing that a person waits for
SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Diagram:
    """``svg`` starts at its ``<svg`` tag and can be put into a page as it is. ``outline``: what is drawn, folded where
    the drawing is."""

    svg: str
    outline: Outline

    @cached_property
    def dot(self) -> str:
        """Source for other tools, written when it is first read: pages need the SVG alone."""
        return dot(self.outline)


def draw(outline: Outline, *, folds: Collection[str] = (), full: bool = False) -> Diagram:
    """Lay the machine out and draw it, each state named in ``folds`` with its inside folded away.

    ``full``: guards and actions are written at the lines; otherwise lines have the event and signs for the rest.

    Takes milliseconds; a definition Graphviz cannot place, some seconds, and a folded one a second.
    """
    if not folds:
        return Diagram(_Drawing(Tree(outline, full=full), {}, FUEL).svg(), outline)
    small = fold(outline, folds)
    drawing = _Drawing(Tree(small.outline, outline, full=full), small.members, FOLDED_FUEL)
    return Diagram(drawing.svg(), small.outline)


class _Drawing:
    def __init__(self, tree: Tree, members: dict[str, tuple[str, ...]], fuel: int) -> None:
        self._outline = tree.outline
        self._members = members
        self._tree = tree
        self._layout = lay_out(tree, fuel)

    def svg(self) -> str:
        root = self._root()
        place = f"translate({sizes.MARGIN:g} {sizes.MARGIN:g})"
        self._edges(element(root, "g", class_="edges", transform=place))
        self._clusters(element(root, "g", class_="clusters", transform=place))
        self._nodes(element(root, "g", class_="nodes", transform=place))
        self._controls(element(root, "g", class_="controls", transform=place))
        return serialize(root)

    def _root(self) -> Element:
        width, height = (round(size + 2 * sizes.MARGIN) for size in (self._layout.width, self._layout.height))
        root = element(
            None,
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            class_="sb-diagram",
            role="group",
            aria_label=drawable(f"Diagram of {self._outline.id}"),
            data_machine=self._outline.id,
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            font_family=SANS,
        )
        title(root, self._outline.id)
        return root

    def _clusters(self, group: Element) -> None:
        """Draw clusters. Parents come before their children in the document, and so below them in the drawing."""
        for state in self._outline.states:
            if self._tree.is_cluster(state):
                draw_cluster(group, state, self._layout.boxes[state_id(state.index)], self._tree)

    def _edges(self, group: Element) -> None:
        lines: dict[str, list[Wire]] = {}
        for wire in self._layout.wires:
            if wire.id in self._layout.curves:
                lines.setdefault(wire.transition.id if wire.transition else f"{wire.kind} {wire.id}", []).append(wire)
        for line in self._in_order(lines):
            self._edge(group, line)

    def _in_order(self, lines: dict[str, list[Wire]]) -> Iterator[list[Wire]]:
        """Yield lines in order: one that runs through the label of another is drawn before that, so that the label
        covers it."""
        of = {wire.id: key for key, line in lines.items() for wire in line}
        begun: set[str] = set()
        ready: list[tuple[str, bool]] = [(key, False) for key in reversed(lines)]
        while ready:
            key, done = ready.pop()
            if done:
                yield lines[key]
            elif key not in begun:
                begun.add(key)
                ready.append((key, True))
                ready += [(of[id], False) for id in sorted(self._layout.crossed.get(lines[key][0].id, ())) if id in of]

    def _edge(self, group: Element, line: list[Wire]) -> None:
        first = line[0]
        paths = [(wire.id, self._layout.curves[wire.id]) for wire in line]
        if first.transition is not None and first.source is not None:
            members = self._members.get(first.transition.id, (first.transition.id,))
            draw_transition(group, first, first.transition, first.source, paths, members)
        elif first.kind == "feeds":
            draw_feed(group, first, paths[0][1])
        else:
            draw_plain(group, first, paths[0][1])

    def _nodes(self, group: Element) -> None:
        boxes = self._layout.boxes
        if (start := boxes.get(start_id())) is not None:
            draw_start(group, start_id(), start, "an instance")
        for state in self._outline.states:
            box = boxes[state_id(state.index)]
            if state.type == "history":
                draw_history(group, state, box)
            elif not self._tree.is_cluster(state):
                draw_state(group, state, box, self._tree)
            elif (start := boxes.get(start_id(state.index))) is not None:
                draw_start(group, start_id(state.index), start, state.name)
        for queue in self._outline.queues:
            if queue_id(queue) in boxes:
                draw_queue(group, queue, boxes[queue_id(queue)])

    def _controls(self, group: Element) -> None:
        for state in self._outline.states:
            if state.type != "history":
                draw_controls(group, state, self._layout.boxes[state_id(state.index)], self._tree)
