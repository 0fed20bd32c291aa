"""Transitions, the feeds of queues, and the edge that starts it all, drawn along their curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import sizes
from .elements import Element, curve, element, polygon, text, title
from .geometry import Curve, Point
from .labels import Line, transition_kind, transition_lines, transition_title
from .names import START, edge_id, feeds_id
from .nodes import OUTLINED
from .text import drawable

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline, TransitionOutline

HEAD = 7.0, 2.8  # length and half width of an arrow's head


def draw_start_edge(parent: Element, path: Curve) -> None:
    group = element(parent, "g", id=f"edge-{START}", class_="edge start")
    _arrow(group, path)


def draw_feed(parent: Element, state: StateOutline, queue: str, path: Curve) -> None:
    id, name = feeds_id(state.index, queue), drawable(state.name)
    group = element(parent, "g", id=id, class_="edge feeds", data_source=name, data_queue=queue)
    title(group, f"{state.name} feeds the queue {queue}")
    _arrow(group, path, stroke_dasharray="3 3")


def draw_transition(parent: Element, transition: TransitionOutline, state: StateOutline, path: Curve) -> None:
    group = element(
        parent,
        "g",
        id=edge_id(transition.id),
        class_=f"edge transition {transition_kind(transition)}".strip(),
        data_transition=transition.id,
        data_source=drawable(state.name),
        data_target=drawable(transition.target) if transition.target else None,
        data_events=" ".join(drawable(event) for event in transition.events),
    )
    title(group, transition_title(transition, state))
    _arrow(group, path)
    _label(group, transition_lines(transition, state), path.label or path.points[len(path.points) // 2])


def _arrow(group: Element, path: Curve, **attributes: str) -> None:
    element(group, "path", class_="line", d=curve(path.points), **OUTLINED, **attributes)
    element(group, "path", class_="head", d=polygon(_head(path)), fill="currentColor")


def _head(path: Curve) -> tuple[Point, Point, Point]:
    """A triangle whose tip is where Graphviz put it, pointing the way the curve ends."""
    length, half = HEAD
    (x, y), (from_x, from_y) = path.tip, path.points[-1]
    if math.hypot(x - from_x, y - from_y) < 1 and len(path.points) > 1:
        from_x, from_y = path.points[-2]
    angle = math.atan2(y - from_y, x - from_x)
    cos, sin = math.cos(angle), math.sin(angle)
    back = x - length * cos, y - length * sin
    return path.tip, (back[0] - half * sin, back[1] + half * cos), (back[0] + half * sin, back[1] - half * cos)


def _label(group: Element, lines: list[Line], centre: Point) -> None:
    """Lines flush left in the room Graphviz kept for them; the flow number follows the event's name."""
    width, height = sizes.label_size(lines)
    left, top = centre[0] - width / 2 + sizes.LABEL_GAP / 2, centre[1] - height / 2
    label = element(group, "g", class_="label")
    for place, line in enumerate(lines):
        size = sizes.SMALL + 2 if line.kind == "event" else sizes.SMALL
        made = text(label, line.text, left, top + (place + 0.8) * sizes.SMALL_LINE, class_=line.kind, font_size=size)
        if line.kind == "event":
            element(made, "tspan", class_="flow", dx=8, font_size=sizes.SMALL + 1)
