"""Graphviz's answer for one level, turned to SVG's axes."""

from __future__ import annotations

import json
from typing import Any

from .dot import POINTS
from .geometry import Block, Box, Curve, Point
from .graphviz_input import Sketch


def read(answer: bytes, sketch: Sketch) -> Block:
    """Read a layout from ``json0`` of the sketch. Lines without an id are there for Graphviz only."""
    graph = json.loads(answer)
    left, bottom, right, top = (float(number) for number in graph["bb"].split(","))
    turn = _Turn(left, top)
    nodes = {name: node for node, name in sketch.names.items()}
    boxes = {nodes[node["name"]]: _box(node, turn) for node in graph.get("objects", []) if "pos" in node}
    wires = [piece.wire.id for piece in sketch.pieces]
    lines = [edge for edge in graph.get("edges", []) if "pos" in edge and edge.get("id")]
    curves = {wires[int(edge["id"])]: _curve(edge, turn) for edge in lines}
    return Block(right - left, top - bottom, boxes, curves)


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
    """Read a curve: ``pos`` is ``[s,x,y] [e,x,y] p0 p1 …``; the end is given apart from the spline."""
    words = edge["pos"].split(";")[0].split()
    tip = next((turn(word[2:]) for word in words if word.startswith("e,")), None)
    points = tuple(turn(word) for word in words if word[0] not in "se")
    return Curve(points, tip or points[-1], turn(edge["lp"]) if edge.get("lp") else None)
