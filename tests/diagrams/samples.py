"""Outlines for tests of the diagrams."""

from __future__ import annotations

import random
from typing import Any
from xml.etree import ElementTree

from machines.engine.definitions import Outline, outline
from tests.catalog.samples import example

__all__ = [
    "NASTY",
    "chain",
    "example",
    "flat",
    "flat_definition",
    "large",
    "one_state",
    "parsed",
    "ring",
    "tangled",
    "texts",
]

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


def tangled() -> Outline:
    """Every kind of line: into, out of and around states with states in them, from the machine itself, to several."""
    inner = {
        "b1": {"on": {"x": "b2"}},
        "b2": {"on": {"top": "A", "both": {"target": ["p1b", "p2b"]}}, "always": {"target": "b3", "guard": "x > 9"}},
        "b3": {"type": "final"},
    }
    own = {
        "reset": {"target": ".a1"},
        "deep": ".a3.b2",
        "self": {"target": "A", "reenter": True},
        "tick": {"actions": {"set": {"x": "x + 1"}}},
        "again": {"target": "A", "guard": "x > 2"},
    }
    a = {
        "initial": "a1",
        "entry": [{"set": {"x": "1"}}, {"log": "x"}],
        "on": own,
        "onDone": "Z",
        "after": {"30s": "Z"},
        "states": {
            "a1": {"on": {"go": "a2", "out": "Z"}},
            "a2": {"on": {"up": "A", "next": "a3"}},
            "a3": {"initial": "b1", "states": inner},
            "fin": {"type": "final"},
            "before": {"type": "history", "history": "deep", "target": "a2"},
        },
    }
    p = {
        "type": "parallel",
        "states": {
            "P1": {"initial": "p1a", "states": {"p1a": {"on": {"k": "p1b"}}, "p1b": {}}},
            "P2": {"initial": "p2a", "states": {"p2a": {"on": {"k": "p2b"}}, "p2b": {"on": {"leave": "before"}}}},
            "P3": {"invoke": {"src": "machine:other"}, "on": {"w": "A"}},
        },
    }
    on = {"panic": "Z", "ping": {"actions": {"set": {"x": "0"}}}}
    states = {"A": a, "P": p, "Z": {"type": "final"}}
    return outline({"id": "tangled", "initial": "A", "context": {"x": 0}, "on": on, "states": states})


def large(tops: int = 8, inside: int = 5, leaves: int = 4) -> Outline:
    """Some two hundred states, three deep, every fourth top one parallel, with lines across all borders."""
    states: dict[str, Any] = {"Failed": {"on": {"retry": "T0"}}}
    for t in range(tops):
        groups = {f"G{t}{g}": _group(t, g, leaves, tops, inside) for g in range(inside)}
        states[f"T{t}"] = {"states": groups, "on": {"cancel": "Failed", "skip": f"T{(t + 2) % tops}"}}
        states[f"T{t}"] |= {"type": "parallel"} if t % 4 == 3 else {"initial": f"G{t}0"}
    return outline({"id": "large", "initial": "T0", "context": {"tries": 0}, "states": states})


def _group(t: int, g: int, leaves: int, tops: int, inside: int) -> dict[str, Any]:
    states: dict[str, Any] = {}
    for n in range(leaves):
        on: dict[str, Any] = {"next": f"s{t}{g}{n + 1}"} if n < leaves - 1 else {"over": f"T{(t + 1) % tops}"}
        if n == 1:
            on["back"] = {"target": f"s{t}{g}0", "guard": "tries < 3", "actions": {"set": {"tries": "tries + 1"}}}
        states[f"s{t}{g}{n}"] = {"on": on} | ({"after": {"30s": f"s{t}{g}0"}} if n == 2 else {})
    on = {"abort": "Failed"} if g == 2 else {}
    return {"initial": f"s{t}{g}0", "states": states, "on": on}


def parsed(svg: str) -> dict[str, ElementTree.Element]:
    """Every element with an id; parsing proves that the SVG is well-formed."""
    return {e.attrib["id"]: e for e in ElementTree.fromstring(svg).iter() if "id" in e.attrib}


def texts(element: ElementTree.Element, kind: str) -> list[str]:
    """The text of the element's parts of a class, tspans included."""
    return ["".join(part.itertext()) for part in element.iter() if part.get("class") == kind]


def flat(count: int, seed: int = 1) -> Outline:
    return outline(flat_definition(count, seed))


def flat_definition(count: int, seed: int = 1) -> dict[str, Any]:
    """A machine of ``count`` states in no other, as people write them: a way on from each, and some far lines."""
    chance = random.Random(seed)
    names = [f"{chance.choice(WORDS)} {chance.choice(WORDS)} {n}" for n in range(count)]
    states: dict[str, Any] = {}
    for place, name in enumerate(names):
        on: dict[str, Any] = {"next": names[(place + 1) % count]}
        if chance.random() < 0.5:
            on[chance.choice(["cancel_order", "retry", "escalate", "send_back"])] = {
                "target": names[chance.randrange(count)], "guard": "tries < 3 and total > 100",
                "actions": {"set": {"tries": "tries + 1"}},
            }  # fmt: skip
        after = {"30s": {"target": names[chance.randrange(count)], "guard": "tries > 5"}}
        states[name] = {"on": on} | ({"after": after} if chance.random() < 0.2 else {})
    return {"id": "flat", "initial": names[0], "context": {"tries": 0, "total": 0}, "states": states}


WORDS = ["waiting", "payment", "Review", "shipping", "Manual", "hold", "Confirm", "stock"]
