"""Which snapshots of a walk lead to others."""

from __future__ import annotations

from collections.abc import Sequence

from .walk import Node


def list_leading(nodes: Sequence[Node], targets: set[int]) -> set[int]:
    """List the numbers of the nodes from which one of the targets is within reach, the targets included."""
    before: dict[int, set[int]] = {}
    for node in nodes:
        for edge in node.edges:
            if edge.target is not None:
                before.setdefault(edge.target, set()).add(node.number)
    found, waiting = set(targets), list(targets)
    while waiting:
        for number in before.get(waiting.pop(), ()):
            if number not in found:
                found.add(number)
                waiting.append(number)
    return found


def find_lost(nodes: Sequence[Node], first: int, arriving: set[int]) -> Node | None:
    """Find the nearest node, behind one where the property ``first`` holds and before one of ``arriving``, from which
    these are out of reach."""
    able = list_leading(nodes, arriving)
    waiting = [node.number for node in nodes if node.holds[first] is True and node.number not in arriving]
    seen = set(waiting)
    while waiting:
        number = waiting.pop(0)
        if number not in able:
            return nodes[number]
        for edge in nodes[number].edges:
            if edge.target is not None and edge.target not in seen and edge.target not in arriving:
                seen.add(edge.target)
                waiting.append(edge.target)
    return None
