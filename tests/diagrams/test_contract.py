"""What painters rely on: ids, classes, data attributes and empty slots, as machines/diagrams/__init__.py promises."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from machines import diagrams
from machines.engine.definitions import outline

from .samples import example, one_state, parsed, texts


@cache
def draw_samples() -> str:
    return "".join(diagrams.draw(outline(example(name))) for name in ("activation", "new_device", "delivery"))


@pytest.fixture(scope="module")
def activation() -> dict:
    return parsed(diagrams.draw(outline(example("activation")), full=True))


@pytest.fixture(scope="module")
def new_device() -> dict:
    return parsed(diagrams.draw(outline(example("new_device")), full=True))


@pytest.mark.parametrize("name", ["activation", "new_device"])
def test_every_part_of_the_index_is_drawn_once(name: str) -> None:
    made = outline(example(name))
    svg = diagrams.draw(made)
    index = diagrams.index(made)
    for part in [*index["states"].values(), *index["transitions"].values(), *index["queues"].values()]:
        assert svg.count(f'<g id="{part}" class="') == 1


def test_the_index_names_states_transitions_and_queues() -> None:
    index = diagrams.index(outline(example("new_device")))
    assert index["states"]["todo"] == "state-2"
    assert index["transitions"]["t1"] == "edge-t1"
    assert index["queues"] == {name: f"queue-{name}" for name in ("start", "todo", "provision", "entitlement", "end")}


def test_a_state_says_what_it_is_and_has_an_empty_count(activation: dict) -> None:
    waiting = activation["state-2"]
    assert waiting.get("class") == "node state"
    assert (waiting.get("data-state"), waiting.get("data-index")) == ("Waiting", "2")
    assert texts(waiting, "name") == ["Waiting"]
    assert texts(waiting, "count") == [""]
    assert len([part for part in waiting.iter() if part.get("class") == "lamp"]) == 1


def test_initial_and_final_states_are_marked_in_the_usual_notation(activation: dict, new_device: dict) -> None:
    assert activation["state-1"].get("class") == "node state initial"
    assert {"start", "edge-start"} <= activation.keys()
    end = new_device["state-6"]
    assert end.get("class") == "node state final"
    assert len([part for part in end.iter() if part.get("class") == "rim"]) == 1


def test_a_transition_says_what_it_is_and_has_an_empty_flow(activation: dict) -> None:
    edge = activation["edge-t2"]
    assert edge.get("class") == "edge transition"
    facts = {name: edge.get(f"data-{name}") for name in ("transition", "source", "target", "events")}
    assert facts == {"transition": "t2", "source": "Waiting", "target": "Active", "events": "entitle"}
    assert texts(edge, "event") == ["entitle"]
    assert texts(edge, "guard") == ["[event.token == token]"]
    assert texts(edge, "action")[0] == "/ failed = 0"
    assert texts(edge, "flow") == [""]


def test_a_transition_that_leaves_no_state_is_internal(activation: dict) -> None:
    assert activation["edge-t3"].get("class") == "edge transition internal"
    assert activation["edge-t3"].get("data-target") is None


def test_a_line_has_its_event_first_and_signs_for_the_rest() -> None:
    edges = parsed(diagrams.draw(outline(example("activation"))))
    assert texts(edges["edge-t2"], "event") == ["entitle…"]
    assert texts(edges["edge-t2"], "guard") == texts(edges["edge-t2"], "action") == []
    assert len([part for part in edges["edge-t2"].iter() if part.get("class") == "sign guarded"]) == 1
    title = edges["edge-t2"].find("{*}title")
    assert title is not None
    assert "[event.token == token]\n/ failed = 0" in (title.text or "")


def test_a_label_has_a_ground_below_its_words(activation: dict) -> None:
    parts = [part.get("class") for part in activation["edge-t2"].find("{*}g[@class='label']") or ()]
    assert parts[0] == "ground"


def test_what_remains_after_guards_is_marked_else(activation: dict) -> None:
    assert texts(activation["edge-t4"], "guard") == ["[else]"]


def test_the_full_text_is_in_the_tooltip(activation: dict) -> None:
    title = activation["edge-t7"].find("{*}title")
    assert title is not None
    assert title.text is not None
    assert "a new code starts it over" in title.text
    assert "/ token = event.token or random_token(6)" in title.text


def test_work_that_ends_is_called_done_and_error(new_device: dict) -> None:
    assert new_device["edge-t1"].get("class") == "edge transition done"
    assert new_device["edge-t2"].get("class") == "edge transition error"
    assert texts(new_device["edge-t1"], "event") == ["done"]


def test_queues_stand_with_the_states_that_feed_them(new_device: dict) -> None:
    queue = new_device["queue-todo"]
    assert (queue.get("class"), queue.get("data-queue")) == ("node queue", "todo")
    assert texts(queue, "count") == [""]
    assert new_device["feeds-2-todo"].get("data-source") == "todo"
    assert texts(new_device["state-2"], "detail") == ["do / do_activate"]


def test_nothing_in_a_drawing_needs_more_than_the_strictest_policy() -> None:
    svg = diagrams.draw(outline(example("new_device")))
    assert not re.search(r"<style|<script|\sstyle=|\son\w+=|href=|<foreignObject|<image", svg)
    assert not re.search(r"#[0-9a-f]{3,6}|rgb\(|black|white", svg)


def test_every_class_that_is_drawn_has_a_look() -> None:
    css = (Path(diagrams.__file__).parent.parent / "static/signalbox/admin/diagram.css").read_text()
    states = ["occupied", "current", *(f"heat-{step}" for step in range(1, 6)), "changed"]
    promised = [*states, "busy", "taken", "possible", "dead", "stale"]
    drawn = {name for classes in re.findall(r'class="([^"]*)"', draw_samples()) for name in classes.split()}
    unstyled = {
        "edges",
        "clusters",
        "nodes",
        "label",
        "branch",
        "controls",
        "parallel",
        "compound",
        "folded",
        "node",
        "edge",
        "transition",
        "initial",
        "final",
    }
    assert [name for name in {*promised, *drawn} - unstyled if not re.search(rf"\.{name}\b", css)] == []
    assert all(name in (diagrams.__doc__ or "") for name in promised if not name.startswith("heat-"))


def test_parts_can_be_lit_on_the_server() -> None:
    svg = diagrams.draw(outline(example("activation")))
    lit = diagrams.lit(svg, ["state-2", "state-99"])
    assert parsed(lit)["state-2"].get("class") == "node state current"
    assert parsed(lit)["state-1"].get("class") == "node state initial"


def test_a_drawing_stands_alone_with_its_stylesheet_in_both_colour_schemes() -> None:
    alone = diagrams.standalone(diagrams.draw(outline(example("activation"))))
    assert alone.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg ')
    assert "color-scheme: light dark" in alone
    assert parsed(alone)["state-2"].get("data-state") == "Waiting"


def test_transitions_between_the_same_states_are_one_line_that_lists_them() -> None:
    on = {
        "pay_by_card": {"target": "B", "guard": "x > 3"},
        "pay_by_transfer": {"target": "B", "actions": {"set": {"x": "x + 1"}}},
        "pay_in_cash": "B",
        "waive": {"target": "B", "guard": "x < 9"},
        "cancel": [{"target": "C", "guard": "x > 1"}, {"target": "C"}],
        "hold": "C",
    }
    made = one_state(on=on)
    drawn = parsed(diagrams.draw(made))
    assert [part.get("data-transition") for part in drawn.values() if part.get("data-transition")] == [
        "t1 t2 t3 t4",
        "t5 t6 t7",
    ]
    assert texts(drawn["edge-t1"], "event") == ["pay_by_card +3…"], "counted where all are too long"
    assert texts(drawn["edge-t5"], "event") == ["cancel, hold"]
    title = "".join(part.text or "" for part in drawn["edge-t1"] if part.tag.endswith("title"))
    assert title.split("\n") == [
        "4 transitions: A → B",
        "t1: pay_by_card [x > 3]",
        "t2: pay_by_transfer / x = x + 1",
        "t3: pay_in_cash",
        "t4: waive [x < 9]",
    ]
    found = diagrams.index(made)["transitions"]
    assert found == dict.fromkeys(["t1", "t2", "t3", "t4"], "edge-t1") | dict.fromkeys(["t5", "t6", "t7"], "edge-t5")


@pytest.mark.parametrize("wanted", [{"merged": False}, {"full": True}])
def test_an_editor_and_full_labels_have_a_line_for_each_transition(wanted: dict[str, bool]) -> None:
    made = one_state(on={"go": "B", "run": "B"})
    assert {"edge-t1", "edge-t2"} <= parsed(diagrams.draw(made, **wanted)).keys()
    assert diagrams.index(made, merged=False)["transitions"] == {"t1": "edge-t1", "t2": "edge-t2"}


def test_a_line_of_transitions_of_one_kind_keeps_its_class() -> None:
    drawn = parsed(diagrams.draw(one_state(after={"5s": "B", "9s": "C"}, on={"go": "B", "run": "B"})))
    assert [part.get("class") for id, part in drawn.items() if id.startswith("edge-t")] == [
        "edge transition",
        "edge transition after",
    ]
