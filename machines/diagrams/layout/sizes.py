"""Measures of the drawing, in points; one point is one pixel of an SVG at its own size.

Graphviz has no fonts in this process and estimates. So boxes are sized here, from columns, for fonts
of known width, and Graphviz only gets the room that each takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .labels import Line
from .text import bold_width, columns

NAME = 14.0  # font size
NAME_LINE = 18.0
SMALL = 10.0  # font size of details, guards and actions: fixed-width fonts are 0.6 of it
SMALL_COLUMN = 6.0
SMALL_LINE = 13.0
EVENT = 12.0  # font size of the event's name on an edge

PAD = 12.0
LAMP = 4.5  # radius
LAMP_ROOM = 19.0
COUNT_ROOM = 63.0  # "100,000" or "59 min", bold at 13, and air
GRIP = 14.0  # what a state is folded by
GRIP_ROOM = 18.0
STATE_LEAST = 132.0
FLOW_ROOM = 44.0
MARK_ROOM = 15.0  # the sign in front of a line, and air
MORE_ROOM = 14.0  # the sign for what is not written, behind a line
LABEL_GAP = 5.0  # between an edge and its label
QUEUE_HEIGHT = 28.0
QUEUE_END = 14.0  # the slats at the open end of a queue
RIM = 4.0
START = 6.0  # radius
SMALL_START = 5.0  # of the one inside a state
HISTORY = 11.0  # radius
MARGIN = 10.0
HEADING_PAD = 7.0  # above and below what a cluster's heading holds
GRIP_MIDDLE = HEADING_PAD + NAME_LINE / 2  # below the top of a cluster
NODE_DROP = PAD - 1 - HEADING_PAD  # so much lower in a node
CLUSTER_PAD = 14.0  # between a cluster's border and what stands in it
STACK = 4.0  # how far the plates of a folded state stand apart


def state_size(name: Sequence[str], details: Sequence[Line], *, grip: bool = False) -> tuple[float, float]:
    """Return width and height of a state's box: lamp, name, count, and the grip of a folded one on top, details
    below."""
    top = LAMP_ROOM + _widest(name) + COUNT_ROOM + (GRIP_ROOM if grip else 0)
    width = max(STATE_LEAST, top + 2 * PAD, _detail_width(details) + 2 * PAD)
    height = 2 * PAD + max(1, len(name)) * NAME_LINE - 2
    return round(width), round(height + (len(details) * SMALL_LINE + 4 if details else 0))


def heading_size(name: Sequence[str], details: Sequence[Line]) -> tuple[float, float]:
    """Return the size of the heading of a state that is drawn around others."""
    top = LAMP_ROOM + _widest(name) + COUNT_ROOM + GRIP_ROOM
    width = max(top, _detail_width(details)) + 2 * PAD
    height = 2 * HEADING_PAD + len(name) * NAME_LINE + (len(details) * SMALL_LINE + 3 if details else 0)
    return round(width), round(height)


def queue_size(name: str) -> tuple[float, float]:
    return round(2 * PAD + QUEUE_END + columns(name) * SMALL_COLUMN * 1.1 + COUNT_ROOM - 14), QUEUE_HEIGHT


def label_columns(lines: Sequence[Line]) -> int:
    """Return width of an edge's label in columns of the small font; the event's line keeps room for the flow number."""
    widths = [line.columns for line in lines if line.kind != "event"]
    events = [event_width(line) + FLOW_ROOM for line in lines if line.kind == "event"]
    return max([*widths, *(int(-(-width // SMALL_COLUMN)) for width in events)], default=0)


def marks_width(line: Line) -> float:
    """Return the width of the signs in front of a line."""
    return MARK_ROOM * len(line.mark.split())


def event_width(line: Line) -> float:
    """Return the width of an event's name with the signs before and behind it, and without its flow number."""
    return marks_width(line) + bold_width(line.text, EVENT) + (MORE_ROOM if line.more else 0)


def label_size(lines: Sequence[Line]) -> tuple[float, float]:
    return label_columns(lines) * SMALL_COLUMN, len(lines) * SMALL_LINE


def _widest(lines: Sequence[str]) -> float:
    return max((bold_width(line, NAME) for line in lines), default=0.0)


def _detail_width(details: Sequence[Line]) -> float:
    return max((line.columns * SMALL_COLUMN + marks_width(line) for line in details), default=0)
