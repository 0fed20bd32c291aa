"""What must be true of every layout, nested or not."""

from __future__ import annotations

import math

from machines.diagrams.layout import labels
from machines.diagrams.layout.curves import Box, Layout, Point
from machines.diagrams.layout.labels import state_name
from machines.diagrams.layout.routes import Wire, homes, wires
from machines.diagrams.layout.state_tree import Tree
from machines.diagrams.part_names import state_id

NEAR = 3.0  # pixels that a line may end short of what it leads to, besides its arrow's head


def faults(tree: Tree, layout: Layout) -> list[str]:
    """Everything that is wrong, in words."""
    return [*_missing(tree, layout), *_outside(tree, layout), *_overlaps(tree, layout), *_loose(tree, layout)]


def _missing(tree: Tree, layout: Layout) -> list[str]:
    nodes = [f"{node} has no place" for node in homes(tree) if node not in layout.boxes]
    return nodes + [f"{wire.id} has no curve" for wire in wires(tree) if wire.id not in layout.curves]


def _outside(tree: Tree, layout: Layout) -> list[str]:
    """What stands in a state is drawn below its heading and within its border."""
    found = []
    for state in tree.outline.states:
        if tree.is_cluster(state):
            frame, top = layout.boxes[state_id(state.index)], below_heading(tree, layout, state.name)
            inside = [layout.boxes[node] for node, home in homes(tree).items() if home == state.name]
            found += [
                f"something stands outside of {state.name}"
                for box in inside
                if box.left < frame.left or box.right > frame.right or box.top < top or box.bottom > frame.bottom
            ]
    return found


def _overlaps(tree: Tree, layout: Layout) -> list[str]:
    levels: dict[str | None, list[str]] = {}
    for node, home in homes(tree).items():
        levels.setdefault(home, []).append(node)
    pairs = [(a, b) for nodes in levels.values() for a in nodes for b in nodes if a < b]
    return [f"{a} covers {b}" for a, b in pairs if not _apart(layout.boxes[a], layout.boxes[b])]


def _apart(a: Box, b: Box) -> bool:
    return a.right <= b.left or b.right <= a.left or a.bottom <= b.top or b.bottom <= a.top


def _loose(tree: Tree, layout: Layout) -> list[str]:
    """Each line begins at the border of its source and its tip touches its target; inside of a state, the heading."""
    found = []
    for wire in wires(tree):
        curve = layout.curves[wire.id]
        if not all(math.isfinite(number) for point in (*curve.points, curve.tip) for number in point):
            found.append(f"{wire.id} is nowhere")
        if not _touches(tree, layout, wire, wire.tail, wire.head, curve.points[0]):
            found.append(f"{wire.id} begins at nothing")
        if not _touches(tree, layout, wire, wire.head, wire.tail, curve.tip):
            found.append(f"{wire.id} leads to nothing")
    return found


def _touches(tree: Tree, layout: Layout, wire: Wire, node: str, other: str, point: Point) -> bool:
    state = next((state for state in tree.outline.states if state_id(state.index) == node), None)
    home = homes(tree)[other]
    if state is not None and home is not None and state.name in tree.ancestors(home):
        return abs(point[1] - below_heading(tree, layout, state.name)) < NEAR
    return distance(layout.boxes[node], point) < NEAR


def below_heading(tree: Tree, layout: Layout, name: str) -> float:
    state = tree.state(name)
    assert state is not None
    high = labels.heading_size(state_name(state), tree.details(state))[1]
    return layout.boxes[state_id(state.index)].top + high


def distance(box: Box, point: Point) -> float:
    """From the border of a box, from inside or outside."""
    x, y = point
    across = max(box.left - x, 0, x - box.right)
    down = max(box.top - y, 0, y - box.bottom)
    if across or down:
        return math.hypot(across, down)
    return min(x - box.left, box.right - x, y - box.top, box.bottom - y)
