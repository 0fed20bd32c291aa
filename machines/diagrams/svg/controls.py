"""What lies on top of a drawing for a hand to take: the grips that fold states, and the marks of what is wrong in them.

A drawing by itself shows none of it: grips and marks appear once a page has made links of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from machines.diagrams.layout import sizes
from machines.diagrams.layout.geometry import Box
from machines.diagrams.layout.labels import state_name
from machines.diagrams.layout.state_tree import Tree
from machines.diagrams.layout.text import drawable
from machines.diagrams.part_names import fold_id, mark_id

from .elements import Element, element, text, title
from .symbols import OUTLINED

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline

REACH = 24.0  # what a finger hits of a grip
SIGN = 3.5  # half the length of its strokes
IN = 4.0  # how far a mark stands from the corner


@dataclass(frozen=True, slots=True)
class Mark:
    """``kind`` is late or failing; ``states``: those it tells of, more than its own where that is folded."""

    id: str
    kind: str
    states: tuple[str, ...]


def marks_of(tree: Tree, state: StateOutline) -> Iterator[Mark]:
    """Draw marks: failing, wherever instances are counted; late, where there is a service level."""
    if not tree.is_cluster(state):
        yield Mark(mark_id("failing", state.index), "failing", (state.name,))
    late = tuple(each.name for each in tree.list_represented(state) if each.sla)
    if late:
        yield Mark(mark_id("late", state.index), "late", late)


def draw_controls(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    if tree.can_fold(state):
        _grip(parent, state, box, tree)
    foot = box.top + sizes.heading_size(state_name(state), tree.details(state))[1] if tree.is_cluster(state) else None
    for mark in marks_of(tree, state):
        _mark(parent, state, mark, box, box.bottom if foot is None else foot)


def _grip(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    folded = tree.is_folded(state)
    group = element(parent, "g", id=fold_id(state.index), class_="fold", data_fold=drawable(state.name))
    title(group, f"{'unfold' if folded else 'fold'} {state.name}")
    x, y = box.right - sizes.PAD - SIGN, box.top + sizes.GRIP_MIDDLE + (sizes.NODE_DROP if folded else 0)
    for kind, size in (("reach", REACH), ("grip", sizes.GRIP)):
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
    text(group, "", x, foot + 12, class_="told", text_anchor=anchor, font_size=sizes.SMALL + 2)
