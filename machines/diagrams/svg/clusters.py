"""States that are drawn around others: a frame with a heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from machines.diagrams.layout import sizes
from machines.diagrams.layout.geometry import Box
from machines.diagrams.layout.labels import state_name
from machines.diagrams.layout.state_tree import Tree

from .elements import Element, element
from .nodes import ROUND, head, state_group
from .symbols import OUTLINED

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline


def draw_cluster(parent: Element, state: StateOutline, box: Box, tree: Tree) -> None:
    """Draw a cluster. Its heading has a ground of its own, which can be clicked."""
    group = state_group(parent, state, tree, "cluster")
    dashed = {"stroke_dasharray": "6 4"} if tree.is_region(state) else {}
    names, details = state_name(state), tree.details(state)
    height = sizes.heading_size(names, details)[1]
    element(
        group,
        "rect",
        class_="plate",
        x=box.left,
        y=box.top,
        width=box.width,
        height=box.height,
        rx=ROUND,
        **OUTLINED,
        **dashed,
    )
    element(group, "path", class_="heading", d=_heading(box, height), fill="none")
    element(group, "path", class_="rule", d=f"M{box.left:.1f},{box.top + height:.1f}H{box.right:.1f}", **OUTLINED)
    top = box.top + sizes.HEADING_PAD
    below = top + len(names) * sizes.NAME_LINE + 2
    head(group, state, box, top, details, below, grip=tree.can_fold(state))


def _heading(box: Box, height: float) -> str:
    """Return the upper part of the frame, round where the frame is."""
    left, right, top = box.left, box.right, box.top
    return (
        f"M{left:.1f},{top + height:.1f}V{top + ROUND:.1f}Q{left:.1f},{top:.1f} {left + ROUND:.1f},{top:.1f}"
        f"H{right - ROUND:.1f}Q{right:.1f},{top:.1f} {right:.1f},{top + ROUND:.1f}V{top + height:.1f}Z"
    )
