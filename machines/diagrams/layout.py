"""From DOT to places. Graphviz gets three tries, each asking less of it; a grid is what remains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .geometry import Box, Curve, Layout, Point
from .grid import grid
from .host import LayoutFailed, graphviz_host
from .source import POINTS, dot

if TYPE_CHECKING:
    from machines.engine.definitions import Outline

FAST = {"nslimit": "1", "nslimit1": "1", "mclimit": "0.1", "splines": "line"}
BILLION = 10**9
TRIES = (  # graph attributes, fuel
    ({}, 12 * BILLION // 10),
    (FAST, 4 * BILLION),
    (FAST | {"rankdir": "LR", "nodesep": "0.1"}, 2 * BILLION),
)
TOO_MANY = 1500  # transitions; beyond this no try has ever succeeded


def lay_out(outline: Outline) -> Layout:
    """Places for every part. Milliseconds for most definitions, and at most two or three seconds."""
    if sum(len(state.transitions) for state in outline.states) <= TOO_MANY:
        for attributes, fuel in TRIES:
            try:
                return read(graphviz_host().lay_out(dot(outline, **attributes), "json0", fuel))
            except LayoutFailed:
                continue
    return grid(outline)


def read(answer: bytes) -> Layout:
    """Graphviz's ``json0`` output as a Layout."""
    graph = json.loads(answer)
    left, bottom, right, top = (float(number) for number in graph["bb"].split(","))
    turn = _Turn(left, top)
    boxes = {node["id"]: _box(node, turn) for node in graph.get("objects", []) if "id" in node}
    curves = {edge["id"]: _curve(edge, turn) for edge in graph.get("edges", []) if "pos" in edge}
    return Layout(right - left, top - bottom, boxes, curves)


class _Turn:
    """Graphviz's y grows upwards."""

    def __init__(self, left: float, top: float) -> None:
        self.left, self.top = left, top

    def __call__(self, text: str) -> Point:
        x, y = text.split(",")[:2]
        return float(x) - self.left, self.top - float(y)


def _box(node: dict[str, Any], turn: _Turn) -> Box:
    x, y = turn(node["pos"])
    return Box(x, y, float(node["width"]) * POINTS, float(node["height"]) * POINTS)


def _curve(edge: dict[str, Any], turn: _Turn) -> Curve:
    """``pos`` is ``[s,x,y] [e,x,y] p0 p1 …``; the end is given apart from the spline, to leave room for an arrow."""
    words = edge["pos"].split(";")[0].split()
    tip = next((turn(word[2:]) for word in words if word.startswith("e,")), None)
    points = tuple(turn(word) for word in words if word[0] not in "se")
    return Curve(points, tip or points[-1], turn(edge["lp"]) if edge.get("lp") else None)
