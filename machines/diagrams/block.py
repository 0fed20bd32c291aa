"""A level that has been laid out: the places of its nodes and pieces, counted from its upper left corner."""

from __future__ import annotations

from dataclasses import dataclass, field

from .geometry import Box, Curve


@dataclass(slots=True)
class Block:
    """``curves`` by the id of their wire. ``gates``: port -> (how far from the left edge, whether at the bottom)."""

    width: float
    height: float
    boxes: dict[str, Box] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    gates: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def moved(self, x: float, y: float) -> Block:
        """The same elsewhere, in a larger one."""
        boxes = {id: box.moved(x, y) for id, box in self.boxes.items()}
        curves = {id: curve.moved(x, y) for id, curve in self.curves.items()}
        return Block(self.width, self.height, boxes, curves, self.gates)
