"""What users write is text everywhere: in DOT, in what Graphviz makes of it, and in our SVG."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from machines import diagrams
from machines.diagrams.dot_source import BACKSLASH
from machines.diagrams.layout.graphviz import graphviz_host
from machines.engine.definitions import outline
from tests.cases import for_each

from .samples import NASTY, one_state, parsed, ring, texts

PLENTY = 5 * 10**9


@for_each("name", NASTY)
def test_a_state_may_have_any_name(name: str) -> None:
    svg = diagrams.draw(ring([name, "other"]))
    state = parsed(svg)["state-1"]
    assert state.get("data-state") == name
    title = state.find("{*}title")
    assert title is not None
    assert title.text == name
    shown = "".join(texts(state, "name")).replace(" ", "")
    assert shown == name.replace(" ", "") or shown.endswith("…")


@for_each("name", NASTY)
def test_graphviz_reads_the_name_as_it_was_written(name: str) -> None:
    """Rendered by Graphviz itself, as someone would who took our DOT: the text comes back, and no markup."""
    made = ring([name, "other"])
    svg = graphviz_host().lay_out(diagrams.dot(made), "svg", PLENTY).decode()
    node = next(part for part in ElementTree.fromstring(svg).iter() if part.findtext("{*}title") == "state-1")
    shown = "".join("".join(part.itertext()) for part in node.iter() if part.tag.endswith("text"))
    assert shown.replace("\xa0", " ").replace(" ", "").removesuffix("…") in name.replace(" ", "")
    tips = [v for part in node.iter() for k, v in part.attrib.items() if k.endswith("}title")]
    assert tips == [name.replace("\\", BACKSLASH)]


@for_each("name", NASTY)
def test_names_do_not_leak_into_the_structure_of_dot(name: str) -> None:
    graph = json.loads(graphviz_host().lay_out(diagrams.dot(ring([name, "other"])), "json0", PLENTY))
    assert [node["name"] for node in graph["objects"]] == ["start", "state-1", "state-2"]
    assert [(edge["tail"], edge["head"]) for edge in graph["edges"]] == [(0, 1), (1, 2), (2, 1)]


@for_each("text", NASTY)
def test_events_guards_actions_and_descriptions_may_hold_anything(text: str) -> None:
    quoted = repr(text)
    event = re.sub(r"\s|\.", "_", text)
    made = one_state(
        description=text,
        tags=[text],
        entry={"log": quoted},
        on={event: {"target": "B", "guard": f"name == {quoted}", "actions": {"log": quoted}, "description": text}},
    )
    drawn = parsed(diagrams.draw(made))
    assert drawn["edge-t1"].get("data-events") == event
    assert not [
        tag for e in drawn.values() for part in e.iter() if (tag := part.tag.split("}")[-1]) in ("script", "img", "b")
    ]
    title = drawn["edge-t1"].find("{*}title")
    assert title is not None
    assert title.text is not None
    assert text in title.text
    graphviz_host().lay_out(diagrams.dot(made), "svg", PLENTY)


def test_what_xml_cannot_hold_is_replaced() -> None:
    made = one_state(description="bell \x07 and \ufffe and\ttab\nline")
    title = parsed(diagrams.draw(made))["state-1"].find("{*}title")
    assert title is not None
    assert title.text == "A\nbell \ufffd and \ufffd and tab line"


def test_a_machine_without_a_description_is_drawn() -> None:
    assert "data-machine" in diagrams.draw(outline({"id": "m", "initial": "A", "states": {"A": {}}}))
