"""SVG elements. Text and attributes go through ElementTree, so nothing a user wrote can become markup."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from machines.diagrams.layout.geometry import Point
from machines.diagrams.layout.text import drawable

Element = ElementTree.Element


def element(parent: Element | None, tag: str, **attributes: object) -> Element:
    """A child of ``parent``. ``class_`` and ``data_x`` become ``class`` and ``data-x``; None leaves one out."""
    named = {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else number(value)
        for name, value in attributes.items()
        if value is not None
    }
    return Element(tag, named) if parent is None else ElementTree.SubElement(parent, tag, named)


def text(parent: Element, content: str, x: float, y: float, **attributes: object) -> Element:
    """``fill`` is there for viewers without our stylesheet; the stylesheet overrides it."""
    made = element(parent, "text", **attributes, x=x, y=y, fill="currentColor")
    made.set("xml:space", "preserve")
    made.text = drawable(content)
    return made


def title(parent: Element, content: str) -> None:
    """The tooltip; its line breaks stay."""
    element(parent, "title").text = "\n".join(drawable(line) for line in content.split("\n"))


def number(value: object) -> str:
    """Coordinates to a tenth of a pixel."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def curve(points: Iterable[Point]) -> str:
    """The path of a cubic Bézier spline."""
    first, *rest = [f"{number(x)},{number(y)}" for x, y in points]
    return f"M{first}C{' '.join(rest)}" if rest else f"M{first}"


def polygon(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points) + "Z"


def serialized(root: Element) -> str:
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)
