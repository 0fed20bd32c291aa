"""The SVG of a machine: Graphviz's places, our parts, and the grips and marks on top of them."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from machines.diagrams.layout import labels
from machines.diagrams.layout.curves import Box
from machines.diagrams.layout.labels import drawable, state_name, transition_title
from machines.diagrams.layout.levels import FUEL, lay_out
from machines.diagrams.layout.routes import Wire
from machines.diagrams.layout.state_tree import FoldedTree, Tree, fold
from machines.diagrams.part_names import fold_id, mark_id, queue_id, start_id, state_id
from machines.engine.definitions import Outline, StateOutline

from .elements import OUTLINED, Element, element, serialize, text, title
from .nodes import (
    draw_cluster,
    draw_feed,
    draw_history,
    draw_plain,
    draw_queue,
    draw_start,
    draw_state,
    draw_transition,
)

DRAWING = 9
"""Number of the way diagrams are drawn; kept with each cached SVG, so that a new way redraws the old ones."""

FOLDED_FUEL = FUEL // 4  # a drawing that a person waits for
SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
REACH = 24.0  # what a finger hits of a grip
SIGN = 3.5  # half the length of its strokes
IN = 4.0  # how far a mark stands from the corner
STYLESHEET = Path(__file__).parents[2] / "static" / "signalbox" / "admin" / "diagram.css"


def draw(outline: Outline, *, folds: Collection[str] = (), full: bool = False, merged: bool = True) -> str:
    """Lay the machine out and draw it, each state named in ``folds`` with its inside folded away. The SVG starts at its
    ``<svg`` tag and can be put into a page as it is.

    ``full``: guards and actions are written at the lines; otherwise lines have the event and signs for the rest.
    ``merged``: transitions between the same two states are one line, unless it is ``full``.

    Takes milliseconds; a definition Graphviz cannot place, some seconds, and a folded one a second.
    """
    small = fold(outline, folds, merged=merged and not full)
    is_waited_for = bool(folds) or any(state.type == "group" for state in outline.states)  # others are kept
    return _Drawing(Tree(small.outline, outline, full=full), small, FOLDED_FUEL if is_waited_for else FUEL).svg()


class _Drawing:
    def __init__(self, tree: Tree, folded: FoldedTree, fuel: int) -> None:
        self._outline = tree.outline
        self._folded = folded
        self._tree = tree
        self._layout = lay_out(tree, fuel)

    def svg(self) -> str:
        root = self._root()
        place = f"translate({labels.MARGIN:g} {labels.MARGIN:g})"
        edges, clusters, nodes, controls = (
            element(root, "g", class_=kind, transform=place) for kind in ("edges", "clusters", "nodes", "controls")
        )
        self._edges(edges)
        for state in self._outline.states:  # parents come before their children, and so below them in the drawing
            box = self._layout.boxes[state_id(state.index)]
            if self._tree.is_cluster(state):
                draw_cluster(clusters, state, box, self._tree)
            if state.type != "history":
                draw_controls(controls, state, box, self._tree)
        self._nodes(nodes)
        return serialize(root)

    def _root(self) -> Element:
        width, height = (round(size + 2 * labels.MARGIN) for size in (self._layout.width, self._layout.height))
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

    def _edges(self, group: Element) -> None:
        lines: dict[str, list[Wire]] = {}
        for wire in self._layout.wires:
            if wire.id in self._layout.curves:
                lines.setdefault(wire.transition.id if wire.transition else f"{wire.kind} {wire.id}", []).append(wire)
        for line in self._sort_lines(lines):
            self._edge(group, line)

    def _sort_lines(self, lines: dict[str, list[Wire]]) -> Iterator[list[Wire]]:
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
            id = first.transition.id
            members = self._folded.members.get(id, (id,))
            said = self._folded.titles.get(id) or transition_title(first.transition, first.source)
            draw_transition(group, first, first.transition, first.source, paths, members, said)
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


@dataclass(frozen=True, slots=True)
class Mark:
    """``kind`` is late or failing; ``states``: those it tells of, more than its own where that is folded."""

    id: str
    kind: str
    states: tuple[str, ...]


def marks_of(tree: Tree, state: StateOutline) -> Iterator[Mark]:
    """Draw marks: failing, wherever instances are counted; late, where there is a service level."""
    if not tree.is_cluster(state):
        own = tree.summed[state.name] if state.type == "group" else (state.name,)
        yield Mark(mark_id("failing", state.index), "failing", own)
    late = tuple(each.name for each in tree.list_represented(state) if each.sla)
    if late:
        yield Mark(mark_id("late", state.index), "late", late)


def draw_controls(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    if tree.can_fold(state):
        _grip(parent, state, box, tree)
    foot = box.top + labels.heading_size(state_name(state), tree.details(state))[1] if tree.is_cluster(state) else None
    for mark in marks_of(tree, state):
        _mark(parent, state, mark, box, box.bottom if foot is None else foot)


def _grip(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    folded = tree.is_folded(state)
    group = element(parent, "g", id=fold_id(state.index), class_="fold", data_fold=drawable(state.name))
    title(group, f"{'unfold' if folded else 'fold'} {state.name}")
    x, y = box.right - labels.PAD - SIGN, box.top + labels.GRIP_MIDDLE + (labels.NODE_DROP if folded else 0)
    for kind, size in (("reach", REACH), ("grip", labels.GRIP)):
        element(
            group, "rect", class_=kind, x=x - size / 2, y=y - size / 2, width=size, height=size, rx=3.0, fill="none"
        )
    stroke = f"M{x - SIGN:.1f},{y:.1f}H{x + SIGN:.1f}"
    upright = f"M{x:.1f},{y - SIGN:.1f}V{y + SIGN:.1f}" if folded else ""
    element(group, "path", class_="sign", d=stroke + upright, **OUTLINED)


def _mark(parent: Element, state: StateOutline, mark: Mark, box: Box, foot: float) -> None:
    """Draw a mark below the state, in a cluster below its heading: what is late at the right, what fails at the
    left."""
    late = mark.kind == "late"
    group = element(
        parent,
        "g",
        id=mark.id,
        class_=f"mark {mark.kind}",
        data_of=drawable(state.name),
        data_states=json.dumps(mark.states),
    )
    x, anchor = (box.right - IN, "end") if late else (box.left + IN, "start")
    text(group, "", x, foot + 12, class_="told", text_anchor=anchor, font_size=labels.SMALL + 2)


def lit(svg: str, ids: Iterable[str], mark: str = "current") -> str:
    """Return the same drawing with the class ``mark`` on the parts with these ids. Ids that are not there are passed
    over."""
    for id in ids:
        svg = re.sub(rf'(<g id="{re.escape(id)}" class="[^"]*)"', rf'\1 {mark}"', svg, count=1)
    return svg


def standalone(svg: str) -> str:
    """Return an SVG document that brings its stylesheet along, follows light and dark, and has a background."""
    head, rest = svg.split(">", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}>{_style()}{rest}\n'


@cache
def _style() -> str:
    css = STYLESHEET.read_text(encoding="utf-8")
    ground = ":root { color-scheme: light dark; background: Canvas; color: CanvasText; }"
    return f"<style><![CDATA[\n{ground}\n{css}]]></style>"
