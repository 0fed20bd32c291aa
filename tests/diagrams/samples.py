"""Outlines for tests of the diagrams."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from machines.engine.definitions import Outline, outline
from tests.catalog.samples import example

__all__ = ["NASTY", "chain", "example", "one_state", "parsed", "ring", "texts"]

NASTY = [
    'He said "hi"',
    "{braces} | pipes",
    "back\\slash\\",
    "\\N \\G \\E \\T \\H \\L \\l \\r \\n",
    "a:b:c",
    "a->b; c [label=x]",
    "<script>alert(1)</script>",
    "<b>bold</b>",
    "<>",
    "&lt;b&gt; &amp; &#65;",
    "]]></title></svg><img src=x onerror=alert(1)>",
    "<!-- -->",
    "😀🚂 party",
    "日本語の状態",
    "e\u0301\u202e",
    "digraph",
    "x" * 100,
    "many words " * 9 + "x",
]
"""State names that mean something to DOT, HTML, XML or a terminal."""


def one_state(**state: Any) -> Outline:
    """A machine with the state A as given, and B and C beside it."""
    states = {"A": state, "B": {"type": "final"}, "C": {"type": "final"}}
    context = {"x": 0, "name": ""}
    return outline({"id": "one", "initial": "A", "context": context, "states": states})


def ring(names: list[str], extra: int = 0) -> Outline:
    """Each state leads to the next; ``extra`` more transitions from each lead further round."""
    states = {}
    for place, name in enumerate(names):
        on = {"next": names[(place + 1) % len(names)]}
        on |= {f"jump{n}": names[(place * 7 + n * 3) % len(names)] for n in range(extra)}
        states[name] = {"on": on}
    return outline({"id": "ring", "initial": names[0], "states": states})


def chain(length: int) -> Outline:
    return ring([f"State {n}" for n in range(length)])


def parsed(svg: str) -> dict[str, ElementTree.Element]:
    """Every element with an id; parsing proves that the SVG is well-formed."""
    return {e.attrib["id"]: e for e in ElementTree.fromstring(svg).iter() if "id" in e.attrib}


def texts(element: ElementTree.Element, kind: str) -> list[str]:
    """The text of the element's parts of a class, tspans included."""
    return ["".join(part.itertext()) for part in element.iter() if part.get("class") == kind]
