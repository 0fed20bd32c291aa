"""States, queues, history and the start marks, drawn into their boxes; lines, drawn along their curves."""

import json
import math

from machines.diagrams.layout import labels
from machines.diagrams.layout.curves import Box, Curve, Point
from machines.diagrams.layout.labels import (
    HISTORIES,
    Line,
    drawable,
    history_title,
    state_name,
    state_title,
    transition_kind,
)
from machines.diagrams.layout.routes import Wire
from machines.diagrams.layout.state_tree import Tree
from machines.diagrams.part_names import queue_id, state_id
from machines.engine.definitions import StateOutline, TransitionOutline

from .elements import OUTLINED, Element, curve, draw_sign, element, polygon, text, title

ROUND = 9.0
BASELINE = 5.0  # from the middle of a line of the name's size down to its baseline
SLATS = (4.0, 8.0)  # from the closed end of a queue
HEAD = 7.0, 2.8  # length and half width of an arrow's head
MORE = "…"  # there is more to read about the line
EDGE = 3.0  # of the ground, around the text


def draw_start(parent: Element, id: str, box: Box, whose: str) -> None:
    group = element(parent, "g", id=id, class_="start")
    title(group, f"where {whose} starts")
    element(group, "circle", cx=box.x, cy=box.y, r=box.width / 2, fill="currentColor")


def draw_history(parent: Element, state: StateOutline, box: Box) -> None:
    id = state_id(state.index)
    group = element(parent, "g", id=id, class_="node history", data_state=drawable(state.name))
    title(group, history_title(state))
    element(group, "circle", class_="plate", cx=box.x, cy=box.y, r=box.width / 2 - 0.5, **OUTLINED)
    letters = HISTORIES[state.history]
    text(group, letters, box.x, box.y + 4, class_="name", text_anchor="middle", font_size=labels.SMALL + 1)


def draw_state(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    """Draw a state that is drawn around no other: a leaf, or one whose inside is folded away."""
    group = state_group(parent, state, tree, "node")
    if tree.is_folded(state):
        box = Box(
            box.x - labels.STACK / 2, box.y - labels.STACK / 2, box.width - labels.STACK, box.height - labels.STACK
        )
        _plate(group, box, "under", 0.0, shift=labels.STACK)
    _plate(group, box, "plate", 0.0)
    inside = box.top + labels.PAD - 1
    if state.type == "final":
        _plate(group, box, "rim", labels.RIM)
    below = inside + len(state_name(state)) * labels.NAME_LINE + 4
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


def state_class(state: StateOutline, tree: Tree) -> str:
    around = tree.parent(state)
    begins = state.name in (around.initial if around else (tree.outline.initial,))
    words = ["state", *([state.type] if state.type not in ("atomic", "history") else [])]
    words += ["region"] if tree.is_region(state) else ["initial"] if begins else []
    return " ".join([*words, *(["folded"] if tree.is_folded(state) else [])])


def head(
    group: Element, state: StateOutline, box: Box, top: float, details: list[Line], below: float, *, grip: bool
) -> None:
    """Draw lamp, name and count in the first line, with room for a grip behind them; details from ``below`` on."""
    first = top + labels.NAME_LINE / 2
    _lamp(group, state, box.left + labels.PAD + labels.LAMP, first)
    _name(group, state_name(state), box.left + labels.PAD + labels.LAMP_ROOM, first + BASELINE)
    _count(group, box.right - labels.PAD - (labels.GRIP_ROOM if grip else 0), first + BASELINE)
    _details(group, details, box.left + labels.PAD, below)


def _lamp(group: Element, state: StateOutline, x: float, y: float) -> None:
    """Draw the lamp. Of a final state it stands in a ring: the bull's-eye of statecharts."""
    if state.type != "final":
        element(group, "circle", class_="lamp", cx=x, cy=y, r=labels.LAMP, **OUTLINED)
        return
    element(group, "circle", class_="ring", cx=x, cy=y, r=labels.LAMP + 1.2, **OUTLINED)
    element(group, "circle", class_="lamp", cx=x, cy=y, r=labels.LAMP - 1.6, fill="currentColor", stroke="currentColor")


def draw_queue(parent: Element, queue: str, box: Box) -> None:
    """Draw a tray that is open where work comes in."""
    group = element(parent, "g", id=queue_id(queue), class_="node queue", data_queue=queue)
    title(group, f"queue {queue}")
    element(group, "path", class_="plate", d=_tray(box), **OUTLINED)
    for slat in SLATS:
        x = box.right - slat
        element(group, "path", class_="slat", d=f"M{x:.1f},{box.top + 6:.1f}V{box.bottom - 6:.1f}", **OUTLINED)
    text(group, queue, box.left + labels.PAD, box.y + 4, class_="name", font_size=labels.SMALL + 1)
    _count(group, box.right - labels.QUEUE_END, box.y + 4)


def _plate(group: Element, box: Box, kind: str, inset: float, shift: float = 0.0, **attributes: str) -> None:
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
        **attributes,
    )


def _name(group: Element, lines: list[str], x: float, y: float) -> None:
    made = text(group, "", x, y, class_="name", font_size=labels.NAME)
    for place, line in enumerate(lines):
        element(made, "tspan", x=x, y=y + place * labels.NAME_LINE).text = line


def _count(group: Element, x: float, y: float) -> None:
    text(group, "", x, y, class_="count", text_anchor="end", font_size=labels.NAME - 1)


def _details(group: Element, lines: list[Line], x: float, y: float) -> None:
    for place, line in enumerate(lines):
        baseline = y + place * labels.SMALL_LINE + labels.SMALL - 1
        if line.mark:
            draw_sign(group, line.mark, x, baseline - 3.2)
        text(group, line.text, x + labels.marks_width(line), baseline, class_=line.kind, font_size=labels.SMALL)


def _tray(box: Box) -> str:
    round_ = 6
    left, right, top, bottom = box.left, box.right, box.top, box.bottom
    return (
        f"M{left:.1f},{top:.1f}H{right - round_:.1f}Q{right:.1f},{top:.1f} {right:.1f},{top + round_:.1f}"
        f"V{bottom - round_:.1f}Q{right:.1f},{bottom:.1f} {right - round_:.1f},{bottom:.1f}H{left:.1f}"
    )


def draw_cluster(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    """Draw a cluster. Its heading has a ground of its own, which can be clicked."""
    group = state_group(parent, state, tree, "cluster")
    dashed = {"stroke_dasharray": "6 4"} if tree.is_region(state) else {}
    names, details = state_name(state), tree.details(state)
    height = labels.heading_size(names, details)[1]
    _plate(group, box, "plate", 0.0, **dashed)
    element(group, "path", class_="heading", d=_heading(box, height), fill="none")
    element(group, "path", class_="rule", d=f"M{box.left:.1f},{box.top + height:.1f}H{box.right:.1f}", **OUTLINED)
    top = box.top + labels.HEADING_PAD
    below = top + len(names) * labels.NAME_LINE + 2
    head(group, state, box, top, details, below, grip=tree.can_fold(state))


def _heading(box: Box, height: float) -> str:
    """Return the upper part of the frame, round where the frame is."""
    left, right, top = box.left, box.right, box.top
    return (
        f"M{left:.1f},{top + height:.1f}V{top + ROUND:.1f}Q{left:.1f},{top:.1f} {left + ROUND:.1f},{top:.1f}"
        f"H{right - ROUND:.1f}Q{right:.1f},{top:.1f} {right:.1f},{top + ROUND:.1f}V{top + height:.1f}Z"
    )


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
    said: str,
) -> None:
    """Draw a group for all lines of a transition: ``wire``, which carries the label, and one for each further target.

    ``members``: the transitions it stands for, itself alone or those that are drawn as one; ``said``: its title.
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
    title(group, said)
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
    left, top = centre[0] - width / 2 + labels.LABEL_GAP / 2, centre[1] - height / 2
    label = element(group, "g", class_="label")
    _ground(label, lines, left, top, height)
    for place, line in enumerate(lines):
        x, y = left, top + (place + 0.8) * labels.SMALL_LINE
        for mark in line.mark.split():
            x += draw_sign(label, mark, x, y - 4)
        size = labels.EVENT if line.kind == "event" else labels.SMALL
        made = text(label, line.text, x, y, class_=line.kind, font_size=size)
        if line.more:
            element(made, "tspan", class_="more", dx=3).text = MORE
        if line.kind == "event":
            element(made, "tspan", class_="flow", dx=8, font_size=labels.SMALL + 1)


def _ground(label: Element, lines: list[Line], left: float, top: float, height: float) -> None:
    """Draw the ground below the words alone: the flow number has a border of its own, and is often not there."""
    words = [labels.event_width(each) if each.kind == "event" else each.columns * labels.SMALL_COLUMN for each in lines]
    width, fill = max(words, default=0) + 2 * EDGE, "none"  # coloured by the stylesheet: another viewer has no paper
    element(label, "rect", class_="ground", x=left - EDGE, y=top - 1, width=width, height=height + 3, rx=3.0, fill=fill)
