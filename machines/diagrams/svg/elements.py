"""SVG elements, written as text. What users wrote is escaped here, so nothing of it can become markup.

The small signs of statecharts are here, too: a clock for timers, linked rings for a machine that a state runs.
"""

import re
from collections.abc import Iterable
from functools import cache

from machines.diagrams.layout import labels
from machines.diagrams.layout.curves import Point
from machines.diagrams.layout.labels import drawable

_IN_TEXT = re.compile("[&<>]")
_IN_ATTRIBUTE = re.compile('[&<>"\t\n\r]')
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ATTRIBUTE_ENTITIES = _ENTITIES | str.maketrans({'"': "&quot;", "\t": "&#09;", "\n": "&#10;", "\r": "&#13;"})
OUTLINED = {"fill": "none", "stroke": "currentColor"}
_RING = "a2.3,2.3 0 1,0 4.6,0a2.3,2.3 0 1,0 -4.6,0"
_DIAMOND = "m.5,0l5,-4.5l5,4.5l-5,4.5Z"
SIGNS = {
    "clock": ("sign", "m.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0m4.5,-2.8v2.8l2.1,1.2"),
    "child": ("sign", f"m.5,0{_RING}m4.6,0h1.8{_RING}"),  # UML's sign of a machine in a state
    "condition": ("sign guarded", _DIAMOND),  # UML's choice: the line is taken when its guard is true
    "else": ("sign guarded", f"{_DIAMOND}m1.5,0h7"),  # when the guards before it are false
}
"""Class and outline of each sign, from the middle of its left edge on."""


class Element:
    """``start``: the escaped start tag without its last bracket. ``children`` is None as long as there are none: a
    drawing of 200 states has five thousand elements, most of them without any."""

    __slots__ = ("children", "start", "tag", "text")

    def __init__(self, tag: str, start: str) -> None:
        self.tag = tag
        self.start = start
        self.text = ""
        self.children: list[Element] | None = None

    def write(self, parts: list[str]) -> None:
        """Append the text of the element and of all in it. Elements are nested a few levels deep, so this recurses."""
        parts.append(f"{self.start}>{_escape_text(self.text)}" if self.text else f"{self.start}>")
        for child in self.children or ():
            child.write(parts)
        parts.append(f"</{self.tag}>")


def element(parent: Element | None, tag: str, **attributes: object) -> Element:
    """Return a child of ``parent``. ``class_`` and ``data_x`` become ``class`` and ``data-x``; None leaves one out."""
    words = [
        f'{_attribute_name(name)}="{_escape_attribute(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    made = Element(tag, " ".join([f"<{tag}", *words]))
    if parent is None:
        return made
    if parent.children is None:
        parent.children = [made]
    else:
        parent.children.append(made)
    return made


@cache
def _attribute_name(name: str) -> str:
    """Return the name of an attribute. Names stand in our code, so there are a few dozen."""
    return name.rstrip("_").replace("_", "-")


def _escape_text(text: str) -> str:
    return text.translate(_ENTITIES) if _IN_TEXT.search(text) else text


def _escape_attribute(text: str) -> str:
    return text.translate(_ATTRIBUTE_ENTITIES) if _IN_ATTRIBUTE.search(text) else text


def text(parent: Element, content: str, x: float, y: float, **attributes: object) -> Element:
    """Write a text. ``fill`` is there for viewers without our stylesheet; the stylesheet overrides it."""
    made = element(parent, "text", **attributes, x=x, y=y, fill="currentColor", **{"xml:space": "preserve"})
    made.text = drawable(content)
    return made


def title(parent: Element, content: str) -> None:
    """Add the tooltip; its line breaks stay."""
    element(parent, "title").text = "\n".join(drawable(line) for line in content.split("\n"))


def number(value: object) -> str:
    """Write coordinates to a tenth of a pixel."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def curve(points: Iterable[Point]) -> str:
    """Return the path of a cubic Bézier spline."""
    first, *rest = [f"{x:.1f},{y:.1f}" for x, y in points]
    path = f"M{first}C{' '.join(rest)} " if rest else f"M{first} "
    return path.replace(".0,", ",").replace(".0 ", " ").replace(".0C", "C")[:-1]


def polygon(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points) + "Z"


def serialize(root: Element) -> str:
    parts: list[str] = []
    root.write(parts)
    return "".join(parts)


def draw_sign(parent: Element, sign: str, x: float, y: float) -> float:
    """Draw a sign. ``x`` is its left edge, ``y`` its middle. Returns how far what follows stands back."""
    kind, outline = SIGNS[sign]
    element(parent, "path", class_=kind, d=f"M{x:.1f},{y:.1f}{outline}", **OUTLINED)
    return labels.MARK_ROOM
