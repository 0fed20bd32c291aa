"""States, queues, history and the start marks, drawn into their boxes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from machines.diagrams.layout import sizes
from machines.diagrams.layout.dot import HISTORY, state_class
from machines.diagrams.layout.geometry import Box
from machines.diagrams.layout.labels import Line, history_title, state_name, state_title
from machines.diagrams.layout.state_tree import Tree
from machines.diagrams.layout.text import drawable
from machines.diagrams.part_names import queue_id, state_id

from .elements import Element, element, text, title
from .symbols import OUTLINED, draw_sign

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline

ROUND = 9.0
BASELINE = 5.0  # from the middle of a line of the name's size down to its baseline
SLATS = (4.0, 8.0)  # from the closed end of a queue


def draw_start(parent: Element, id: str, box: Box, whose: str) -> None:
    group = element(parent, "g", id=id, class_="start")
    title(group, f"where {whose} starts")
    element(group, "circle", cx=box.x, cy=box.y, r=box.width / 2, fill="currentColor")


def draw_history(parent: Element, state: StateOutline, box: Box) -> None:
    id = state_id(state.index)
    group = element(parent, "g", id=id, class_="node history", data_state=drawable(state.name))
    title(group, history_title(state))
    element(group, "circle", class_="plate", cx=box.x, cy=box.y, r=box.width / 2 - 0.5, **OUTLINED)
    letters = HISTORY[state.history]
    text(group, letters, box.x, box.y + 4, class_="name", text_anchor="middle", font_size=sizes.SMALL + 1)


def draw_state(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    """Draw a state that is drawn around no other: a leaf, or one whose inside is folded away."""
    group = state_group(parent, state, tree, "node")
    if tree.is_folded(state):
        box = Box(box.x - sizes.STACK / 2, box.y - sizes.STACK / 2, box.width - sizes.STACK, box.height - sizes.STACK)
        _plate(group, box, "under", 0.0, shift=sizes.STACK)
    _plate(group, box, "plate", 0.0)
    inside = box.top + sizes.PAD - 1
    if state.type == "final":
        _plate(group, box, "rim", sizes.RIM)
    below = inside + len(state_name(state)) * sizes.NAME_LINE + 4
    head(group, state, box, inside, tree.details(state), below, grip=tree.can_fold(state))


def state_group(parent: Element, state: StateOutline, tree: Tree, shape: str) -> Element:
    """Return the group of a state with what painters and readers need to know. ``data-leaves`` names the leaves it sums
    up."""
    leaves = tree.summed[state.name]
    group = element(
        parent,
        "g",
        id=state_id(state.index),
        class_=f"{shape} {state_class(state, tree)}",
        data_state=drawable(state.name),
        data_index=str(state.index),
        data_leaves=json.dumps(leaves) if leaves != (state.name,) else None,
    )
    title(group, state_title(state))
    return group


def head(
    group: Element, state: StateOutline, box: Box, top: float, details: list[Line], below: float, *, grip: bool
) -> None:
    """Draw lamp, name and count in the first line, with room for a grip behind them; details from ``below`` on."""
    first = top + sizes.NAME_LINE / 2
    _lamp(group, state, box.left + sizes.PAD + sizes.LAMP, first)
    _name(group, state_name(state), box.left + sizes.PAD + sizes.LAMP_ROOM, first + BASELINE)
    _count(group, box.right - sizes.PAD - (sizes.GRIP_ROOM if grip else 0), first + BASELINE)
    _details(group, details, box.left + sizes.PAD, below)


def _lamp(group: Element, state: StateOutline, x: float, y: float) -> None:
    """Draw the lamp. Of a final state it stands in a ring: the bull's-eye of statecharts."""
    if state.type != "final":
        element(group, "circle", class_="lamp", cx=x, cy=y, r=sizes.LAMP, **OUTLINED)
        return
    element(group, "circle", class_="ring", cx=x, cy=y, r=sizes.LAMP + 1.2, **OUTLINED)
    element(group, "circle", class_="lamp", cx=x, cy=y, r=sizes.LAMP - 1.6, fill="currentColor", stroke="currentColor")


def draw_queue(parent: Element, queue: str, box: Box) -> None:
    """Draw a tray that is open where work comes in."""
    group = element(parent, "g", id=queue_id(queue), class_="node queue", data_queue=queue)
    title(group, f"queue {queue}")
    element(group, "path", class_="plate", d=_tray(box), **OUTLINED)
    for slat in SLATS:
        x = box.right - slat
        element(group, "path", class_="slat", d=f"M{x:.1f},{box.top + 6:.1f}V{box.bottom - 6:.1f}", **OUTLINED)
    text(group, queue, box.left + sizes.PAD, box.y + 4, class_="name", font_size=sizes.SMALL + 1)
    _count(group, box.right - sizes.QUEUE_END, box.y + 4)


def _plate(group: Element, box: Box, kind: str, inset: float, shift: float = 0.0) -> None:
    element(
        group,
        "rect",
        class_=kind,
        x=box.left + inset + shift,
        y=box.top + inset + shift,
        width=box.width - 2 * inset,
        height=box.height - 2 * inset,
        rx=max(ROUND - inset, 2.0),
        **OUTLINED,
    )


def _name(group: Element, lines: list[str], x: float, y: float) -> None:
    made = text(group, "", x, y, class_="name", font_size=sizes.NAME)
    for place, line in enumerate(lines):
        element(made, "tspan", x=x, y=y + place * sizes.NAME_LINE).text = line


def _count(group: Element, x: float, y: float) -> None:
    text(group, "", x, y, class_="count", text_anchor="end", font_size=sizes.NAME - 1)


def _details(group: Element, lines: list[Line], x: float, y: float) -> None:
    for place, line in enumerate(lines):
        baseline = y + place * sizes.SMALL_LINE + sizes.SMALL - 1
        if line.mark:
            draw_sign(group, line.mark, x, baseline - 3.2)
        text(
            group,
            line.text,
            x + sizes.marks_width(line),
            baseline,
            class_=line.kind,
            font_size=sizes.SMALL,
        )


def _tray(box: Box) -> str:
    round_ = 6
    left, right, top, bottom = box.left, box.right, box.top, box.bottom
    return (
        f"M{left:.1f},{top:.1f}H{right - round_:.1f}Q{right:.1f},{top:.1f} {right:.1f},{top + round_:.1f}"
        f"V{bottom - round_:.1f}Q{right:.1f},{bottom:.1f} {right - round_:.1f},{bottom:.1f}H{left:.1f}"
    )
