"""States, queues and the start mark, drawn into their boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import sizes
from .elements import Element, element, text, title
from .geometry import Box
from .labels import Line, state_details, state_name, state_title
from .names import START, queue_id, state_id
from .source import state_class
from .text import drawable

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline

ROUND = 9.0
BASELINE = 5.0  # from the middle of a line of the name's size down to its baseline
SLATS = (4.0, 8.0)  # from the closed end of a queue


def draw_start(parent: Element, box: Box) -> None:
    group = element(parent, "g", id=START, class_="start")
    title(group, "where an instance starts")
    element(group, "circle", cx=box.x, cy=box.y, r=sizes.START, fill="currentColor")


def draw_state(parent: Element, state: StateOutline, box: Box, initial: bool) -> None:
    group = element(
        parent,
        "g",
        id=state_id(state.index),
        class_=f"node {state_class(state, initial)}",
        data_state=drawable(state.name),
        data_index=str(state.index),
    )
    title(group, state_title(state))
    _plate(group, box, "plate", 0.0)
    inside = box.top + sizes.PAD - 1
    if state.type == "final":
        _plate(group, box, "rim", sizes.RIM)
        inside += sizes.RIM
    name = state_name(state)
    first = inside + sizes.NAME_LINE / 2
    element(group, "circle", class_="lamp", cx=box.left + sizes.PAD + sizes.LAMP, cy=first, r=sizes.LAMP, **OUTLINED)
    _name(group, name, box.left + sizes.PAD + sizes.LAMP_ROOM, first + BASELINE)
    _count(group, box.right - sizes.PAD, first + BASELINE)
    _details(group, state_details(state), box.left + sizes.PAD, inside + len(name) * sizes.NAME_LINE + 4)


def draw_queue(parent: Element, queue: str, box: Box) -> None:
    """A tray that is open where work comes in."""
    group = element(parent, "g", id=queue_id(queue), class_="node queue", data_queue=queue)
    title(group, f"queue {queue}")
    element(group, "path", class_="plate", d=_tray(box), **OUTLINED)
    for slat in SLATS:
        x = box.right - slat
        element(group, "path", class_="slat", d=f"M{x:.1f},{box.top + 6:.1f}V{box.bottom - 6:.1f}", **OUTLINED)
    text(group, queue, box.left + sizes.PAD, box.y + 4, class_="name", font_size=sizes.SMALL + 1)
    _count(group, box.right - sizes.QUEUE_END, box.y + 4)


OUTLINED = {"fill": "none", "stroke": "currentColor"}


def _plate(group: Element, box: Box, kind: str, inset: float) -> None:
    element(
        group,
        "rect",
        class_=kind,
        x=box.left + inset,
        y=box.top + inset,
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
        text(group, line.text, x, baseline, class_=line.kind, font_size=sizes.SMALL)


def _tray(box: Box) -> str:
    round_ = 6
    left, right, top, bottom = box.left, box.right, box.top, box.bottom
    return (
        f"M{left:.1f},{top:.1f}H{right - round_:.1f}Q{right:.1f},{top:.1f} {right:.1f},{top + round_:.1f}"
        f"V{bottom - round_:.1f}Q{right:.1f},{bottom:.1f} {right - round_:.1f},{bottom:.1f}H{left:.1f}"
    )
