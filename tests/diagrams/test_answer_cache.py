"""Levels that are equal are laid out once, and a drawing is the same with a full cache and with an empty one."""

from __future__ import annotations

import random
from typing import Any
from xml.etree import ElementTree

import pytest

from machines import diagrams
from machines.diagrams.layout import label_places, levels
from machines.diagrams.layout.curves import Box, Curve
from machines.diagrams.layout.graphviz import Answer, AnswerCache, Graphviz, graphviz_host
from machines.diagrams.svg.elements import element, serialize, text, title
from machines.engine.definitions import Outline, outline
from tests.cases import for_each

from .samples import NASTY, example, flat, large, tangled


@pytest.fixture(autouse=True)
def _empty() -> None:
    levels.ANSWERS.clear()


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that Graphviz was asked for."""
    asked: list[str] = []
    lay_out = Graphviz.lay_out

    def listen(host: Graphviz, source: str, format: str, fuel: int) -> bytes:
        asked.append(source)
        return lay_out(host, source, format, fuel)

    monkeypatch.setattr(Graphviz, "lay_out", listen)
    return asked


def grouped(count: int, **changed: Any) -> Outline:
    """Groups of different sizes, so that no two are equal; ``changed`` states are added to the second."""
    states: dict[str, Any] = {}
    for group in range(count):
        inside: dict[str, Any] = {
            f"g{group}s{n}": {"on": {"next": f"g{group}s{(n + 1) % (group + 2)}"}} for n in range(group + 2)
        }
        states[f"G{group}"] = {"initial": f"g{group}s0", "states": inside | (changed if group == 1 else {})}
        states[f"G{group}"]["on"] = {"forward": f"G{(group + 1) % count}"}
    return outline({"id": "m", "initial": "G0", "states": states})


def test_a_changed_definition_has_only_the_changed_level_and_those_around_it_laid_out(sources: list[str]) -> None:
    diagrams.draw(grouped(6))
    assert len(sources) == 7
    del sources[:]
    diagrams.draw(grouped(6, added={}))
    assert len(sources) == 2
    del sources[:]
    diagrams.draw(grouped(6, added={}))
    assert sources == []


def test_levels_of_one_shape_are_laid_out_once(sources: list[str]) -> None:
    states = {
        f"P{group}": {"initial": f"a{group}", "states": {f"a{group}": {"on": {"go": f"b{group}"}}, f"b{group}": {}}}
        for group in range(5)
    }
    diagrams.draw(outline({"id": "m", "initial": "P0", "states": states}))
    assert len(sources) == 2


@for_each("made", [outline(example("new_device")), tangled(), large(4, 3, 3), flat(30), grouped(4)])
def test_a_machine_is_drawn_the_same_way_with_a_full_cache(made: Outline) -> None:
    first = diagrams.draw(made)
    assert diagrams.draw(made) == first
    levels.ANSWERS.clear()
    assert diagrams.draw(made) == first


def test_an_answer_counts_the_work_that_it_took() -> None:
    made = grouped(3)
    drawn = []
    for _ in range(2):
        laid = levels._Levels(levels.Tree(made), levels.FUEL)
        laid.layout()
        drawn.append(laid._fuel)
    assert drawn[0] == drawn[1] < levels.FUEL
    with pytest.raises(levels.LayoutFailed):
        levels._Levels(levels.Tree(made), 0)._run("digraph {}", 0)


def test_an_answer_that_took_more_work_than_is_allowed_is_not_there() -> None:
    cache = AnswerCache(1000)
    cache.put("a", Answer(b"x", 50))
    assert cache.get("a", 49) is None
    assert cache.get("a", 50) == Answer(b"x", 50)
    assert cache.get("b", 50) is None


def test_the_cache_holds_no_more_than_its_room_and_drops_what_was_not_read() -> None:
    cache = AnswerCache(1000)
    for number in range(20):
        cache.put(str(number), Answer(b"x" * 200, 1))
        cache.get("0", 1)
    assert cache.size == 1000
    assert [number for number in range(20) if cache.get(str(number), 1)] == [0, 16, 17, 18, 19]
    cache.put("0", Answer(b"x" * 100, 1))
    assert cache.size == 900
    cache.put("large", Answer(b"x" * 251, 1))
    assert cache.get("large", 1) is None


def test_work_is_counted_for_the_thread_that_asked() -> None:
    graphviz_host().lay_out("digraph { a -> b }", "json0", 10**9)
    assert 0 < graphviz_host().used < 10**9


def test_the_map_of_borders_finds_what_a_map_of_whole_boxes_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    boxes = {f"b{n}": Box(*(chance.uniform(0, 800) for _ in range(2)), *(chance.uniform(5, 500) for _ in range(2)))
             for n in range(40)}  # fmt: skip
    curves = {"line": Curve(((0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)), (4.0, 4.0), None)}
    places = [Box(chance.uniform(0, 800), chance.uniform(0, 800), 90, 20) for _ in range(300)]
    near = label_places._Neighbours(boxes, curves, boxes)
    found = [near.cost("line", place) for place in places]
    monkeypatch.setattr(label_places, "_border_cells", label_places._cells)
    whole = label_places._Neighbours(boxes, curves, boxes)
    assert [whole.cost("line", place) for place in places] == found


@for_each("words", [*NASTY, "a\tb\nc\rd", "\0\x1f", ""])
def test_what_users_wrote_is_read_back_from_an_element(words: str) -> None:
    root = element(None, "svg", data_of=words, width=3.0, x=None)
    title(root, words)
    made = text(root, words, 1.25, -2.0, class_="name")
    read = ElementTree.fromstring(serialize(root).replace("\0", "\ufffd").replace("\x1f", "\ufffd"))
    assert read.get("data-of") == words.replace("\0", "\ufffd").replace("\x1f", "\ufffd")
    assert read.attrib.keys() == {"data-of", "width"}
    assert read[1].attrib == {
        "class": "name", "x": "1.2", "y": "-2", "fill": "currentColor",
        "{http://www.w3.org/XML/1998/namespace}space": "preserve",
    }  # fmt: skip
    assert (read[1].text or "") == made.text
