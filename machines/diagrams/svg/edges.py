"""Transitions, the feeds of queues, and the edge that starts it all, drawn along their curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from machines.diagrams.layout import sizes
from machines.diagrams.layout.geometry import Curve, Point
from machines.diagrams.layout.labels import Line, transition_kind, transition_title
from machines.diagrams.layout.routes import Wire
from machines.diagrams.layout.text import drawable

from .elements import Element, curve, element, polygon, text, title
from .symbols import OUTLINED, draw_sign

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline, TransitionOutline

HEAD = 7.0, 2.8  # length and half width of an arrow's head


def draw_plain(parent: Element, wire: Wire, path: Curve) -> None:
    """Draw a line from a start mark, or from a history to where it leads when there is nothing to remember."""
    _arrow(element(parent, "g", id=wire.id, class_=f"edge {wire.kind}"), path)


def draw_feed(parent: Element, wire: Wire, path: Curve) -> None:
    assert wire.source is not None
    name = wire.source.name
    group = element(parent, "g", id=wire.id, class_="edge feeds", data_source=drawable(name), data_queue=wire.queue)
    title(group, f"{name} feeds the queue {wire.queue}")
    _arrow(group, path, stroke_dasharray="3 3")


def draw_transition(
    parent: Element,
    wire: Wire,
    transition: TransitionOutline,
    state: StateOutline,
    paths: list[tuple[str, Curve]],
    members: tuple[str, ...],
) -> None:
    """Draw a group for all lines of a transition: ``wire``, which carries the label, and one for each further target.
    ``members``: the transitions it stands for, itself alone but in a folded drawing.


    ``members``: the transitions it stands for, itself alone but in a folded drawing.
    """
    (id, path), *further = paths
    group = element(
        parent,
        "g",
        id=id,
        class_=f"edge transition {transition_kind(transition)}".strip(),
        data_transition=" ".join(members),
        data_source=drawable(state.name),
        data_target=" ".join(drawable(target) for target in transition.targets) or None,
        data_events=" ".join(drawable(event) for event in transition.events),
    )
    title(group, transition_title(transition, state))
    _arrow(group, path)
    _label(group, wire, path.label or path.points[len(path.points) // 2])
    for id, path in further:
        _arrow(element(group, "g", id=id, class_="branch"), path)


def _arrow(group: Element, path: Curve, **attributes: str) -> None:
    element(group, "path", class_="line", d=curve(path.points), **OUTLINED, **attributes)
    element(group, "path", class_="head", d=polygon(_head(path)), fill="currentColor")


def _head(path: Curve) -> tuple[Point, Point, Point]:
    """Return a triangle whose tip is where Graphviz put it, pointing the way the curve ends."""
    length, half = HEAD
    (x, y), (from_x, from_y) = path.tip, path.points[-1]
    if math.hypot(x - from_x, y - from_y) < 1 and len(path.points) > 1:
        from_x, from_y = path.points[-2]
    angle = math.atan2(y - from_y, x - from_x)
    cos, sin = math.cos(angle), math.sin(angle)
    back = x - length * cos, y - length * sin
    return path.tip, (back[0] - half * sin, back[1] + half * cos), (back[0] + half * sin, back[1] - half * cos)


def _label(group: Element, wire: Wire, centre: Point) -> None:
    """Draw a label: lines flush left in the room Graphviz kept, on a ground that hides the lines which pass below."""
    lines, (width, height) = wire.lines, wire.size
    left, top = centre[0] - width / 2 + sizes.LABEL_GAP / 2, centre[1] - height / 2
    label = element(group, "g", class_="label")
    _ground(label, lines, left, top, height)
    for place, line in enumerate(lines):
        x, y = left, top + (place + 0.8) * sizes.SMALL_LINE
        for mark in line.mark.split():
            x += draw_sign(label, mark, x, y - 4)
        size = sizes.EVENT if line.kind == "event" else sizes.SMALL
        made = text(label, line.text, x, y, class_=line.kind, font_size=size)
        if line.more:
            element(made, "tspan", class_="more", dx=3).text = MORE
        if line.kind == "event":
            element(made, "tspan", class_="flow", dx=8, font_size=sizes.SMALL + 1)


MORE = "…"  # there is more to read about the line
EDGE = 3.0  # of the ground, around the text


def _ground(label: Element, lines: list[Line], left: float, top: float, height: float) -> None:
    """Draw the ground below the words alone: the flow number has a border of its own, and is often not there."""
    words = [sizes.event_width(each) if each.kind == "event" else each.columns * sizes.SMALL_COLUMN for each in lines]
    width, fill = max(words, default=0) + 2 * EDGE, "none"  # coloured by the stylesheet: another viewer has no paper
    element(label, "rect", class_="ground", x=left - EDGE, y=top - 1, width=width, height=height + 3, rx=3.0, fill=fill)
