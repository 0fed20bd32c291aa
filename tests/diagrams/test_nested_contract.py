"""The notation of statecharts, and what painters rely on: states around others, regions, history, timers, children."""

from __future__ import annotations

import json
from xml.etree.ElementTree import Element

import pytest

from machines import diagrams
from machines.diagrams.layout.graphviz import graphviz_host
from machines.diagrams.layout.state_tree import Tree
from machines.engine.definitions import outline
from tests.cases import for_each

from .samples import NASTY, example, parsed, tangled, texts

DELIVERY = outline(example("delivery"))
PLENTY = 5 * 10**9


@pytest.fixture(scope="module")
def delivery() -> dict[str, Element]:
    return parsed(diagrams.draw(DELIVERY))


@pytest.fixture(scope="module")
def knot() -> dict[str, Element]:
    return parsed(diagrams.draw(tangled()))


def kinds(element: Element) -> set[str]:
    return {part.get("class", "") for part in element.iter()}


def of(drawn: dict[str, Element], name: str) -> Element:
    return drawn[diagrams.index(DELIVERY)["states"][name]]


def edge(drawn: dict[str, Element], source: str, event: str) -> Element:
    """The one line out of a state that is named so."""
    found = [part for part in drawn.values() if part.get("data-source") == source and texts(part, "event") == [event]]
    assert len(found) == 1
    return found[0]


def test_a_state_around_others_is_a_frame_with_a_heading_and_a_count(delivery: dict[str, Element]) -> None:
    frame = of(delivery, "Fulfilling")
    assert frame.get("class") == "cluster state parallel"
    assert (frame.get("data-state"), frame.get("data-index")) == ("Fulfilling", "2")
    assert {"plate", "heading", "rule", "lamp", "count"} <= kinds(frame)
    assert texts(frame, "name") == ["Fulfilling"]
    assert texts(frame, "count") == [""]


def test_regions_have_dashed_borders_and_other_states_have_not(delivery: dict[str, Element]) -> None:
    def is_dashed(name: str) -> bool:
        return any(part.get("stroke-dasharray") for part in of(delivery, name) if part.get("class") == "plate")

    assert [is_dashed(name) for name in ("Parcel", "Invoice", "Customer")] == [True] * 3
    assert not is_dashed("Fulfilling")
    assert "region" in (of(delivery, "Parcel").get("class") or "").split()


def test_a_region_without_states_in_it_is_one_too(knot: dict[str, Element]) -> None:
    (region,) = (part for part in knot.values() if part.get("data-state") == "P3")
    assert region.get("class") == "node state region"


def test_frames_lie_below_the_nodes_and_parents_below_their_children() -> None:
    svg = diagrams.draw(DELIVERY)
    places = [svg.index(f'<g class="{layer}"') for layer in ("edges", "clusters", "nodes")]
    assert places == sorted(places)
    frames = [svg.index(f'<g id="state-{n}" class="cluster') for n in (2, 3, 10, 15)]
    assert frames == sorted(frames)


def test_every_state_around_others_has_its_start_mark_but_parallel_ones(delivery: dict[str, Element]) -> None:
    assert {"start", "start-3", "edge-start-3"} <= delivery.keys()
    assert "start-2" not in delivery
    assert delivery["start-3"].get("class") == "start"


def test_a_machine_that_acts_itself_is_the_outermost_frame_and_starts_inside(knot: dict[str, Element]) -> None:
    assert (knot["state-1"].get("class") or "").startswith("cluster state compound")
    assert knot["state-1"].get("data-state") == "tangled"
    assert "start" not in knot
    assert "start-1" in knot


def test_history_is_a_ring_with_its_letters_and_a_dashed_line_to_its_default(delivery: dict[str, Element]) -> None:
    history = delivery["state-19"]
    assert (history.get("class"), history.get("data-state")) == ("node history", "as it was")
    assert texts(history, "name") == ["H*"]
    assert "count" not in kinds(history)
    assert {delivery[f"edge-start-19{n}"].get("class") for n in ("", "-2", "-3")} == {"edge default"}
    shallow = outline(
        {"id": "m", "initial": "A", "states": {"A": {"initial": "b", "states": {"b": {}, "h": {"type": "history"}}}}}
    )
    assert texts(parsed(diagrams.draw(shallow))["state-3"], "name") == ["H"]


def test_a_final_state_is_a_bulls_eye(delivery: dict[str, Element]) -> None:
    assert {"rim", "ring", "lamp"} <= kinds(of(delivery, "Delivered"))
    assert "ring" not in kinds(of(delivery, "Packed"))


def test_a_timer_carries_a_clock_and_says_how_long(delivery: dict[str, Element]) -> None:
    timer = edge(delivery, "On its way", "after 45 s")
    assert timer.get("class") == "edge transition after"
    assert "sign" in kinds(timer)
    assert "sign" not in kinds(edge(delivery, "On its way", "deliver"))


def test_all_that_wait_for_one_timer_say_how_long() -> None:
    made = outline(
        {
            "id": "m",
            "initial": "A",
            "context": {"x": 0},
            "states": {"A": {"after": {"30s": [{"guard": "x > 1", "target": "B"}, {"target": "C"}]}}, "B": {}, "C": {}},
        }
    )
    drawn = parsed(diagrams.draw(made))
    assert [texts(drawn[edge], "event") for edge in ("edge-t1", "edge-t2")] == [["after 30 s"], ["after 30 s"]]


def test_a_machine_that_a_state_runs_is_marked_and_feeds_no_queue(delivery: dict[str, Element]) -> None:
    paying = of(delivery, "Paying")
    assert texts(paying, "detail") == ["do / payment"]
    assert "sign" in kinds(paying)
    assert not [id for id in delivery if id.startswith("feeds-1-")]
    picking = of(delivery, "Picking")
    assert texts(picking, "detail") == ["do / pick"]
    assert "sign" not in kinds(picking)


def test_the_end_of_a_state_is_called_done(delivery: dict[str, Element]) -> None:
    assert edge(delivery, "Fulfilling", "done").get("class") == "edge transition done"


def test_a_transition_to_several_targets_is_one_part_with_a_line_to_each(knot: dict[str, Element]) -> None:
    both = next(id for id, part in knot.items() if part.get("data-events") == "both")
    assert knot[both].get("data-target") == "p1b p2b"
    assert knot[f"{both}-2"].get("class") == "branch"
    assert f"{both}-2" in {part.get("id") for part in knot[both].iter()}
    assert len([part for part in knot[both].iter() if part.get("class") == "head"]) == 2
    assert texts(knot[both], "event") == ["both"]


def test_a_state_around_others_names_the_leaves_it_sums_up(delivery: dict[str, Element]) -> None:
    parcel = ["Picking", "Missing", "Packed", "On its way", "Late", "At the door"]
    assert json.loads(of(delivery, "Parcel").get("data-leaves", "")) == parcel
    assert json.loads(of(delivery, "Fulfilling").get("data-leaves", "")) == parcel, "one region's"
    assert of(delivery, "Packed").get("data-leaves") is None


def test_sums_are_what_the_outline_counts() -> None:
    for made in (DELIVERY, tangled()):
        counts = {leaf: 3**number for number, leaf in enumerate(made.leaves)}
        sums = diagrams.index(made)["sums"]
        counted = made.sum_counts(counts)
        assert {name: sum(counts[leaf] for leaf in leaves) for name, leaves in sums.items()} == {
            state.name: counted[state.name] for state in made.states if state.type != "history"
        }


def test_the_index_tells_how_states_are_nested() -> None:
    index = diagrams.index(DELIVERY)
    assert index["parents"]["Packed"] == "Parcel"
    assert index["parents"]["Parcel"] == "Fulfilling"
    assert index["parents"]["Fulfilling"] is None
    assert index["regions"] == {"Fulfilling": ["Parcel", "Invoice", "Customer"]}
    assert "as it was" not in index["states"]


def test_a_state_is_active_with_those_around_it_in_every_region() -> None:
    found = diagrams.active(DELIVERY, ["Packed", "Sent", "Told"])
    assert found == ["Fulfilling", "Parcel", "Packed", "Invoice", "Sent", "Customer", "Told"]
    assert diagrams.active(DELIVERY, ["gone since"]) == []


def test_the_top_level_shows_states_whole_and_what_leads_between_them() -> None:
    assert diagrams.foldable(DELIVERY) == ("Fulfilling", "Parcel", "Invoice", "Customer")
    drawn = parsed(diagrams.draw(DELIVERY, folds=diagrams.top_level(DELIVERY)))
    assert [id for id in drawn if id.startswith("state-")] == [f"state-{n}" for n in (1, 2, 20, 21, 22)]
    folded = drawn["state-2"]
    assert folded.get("class") == "node state parallel folded"
    assert texts(folded, "detail") == ["3 regions, 13 states"]
    assert json.loads(folded.get("data-leaves", ""))[0] == "Picking"
    assert edge(drawn, "On hold", "resume, after 90 s").get("data-target") == "Fulfilling", (
        "the history it leads to is inside"
    )
    assert {part.get("data-source") for part in drawn.values()} <= {None, "Paying", "Fulfilling", "On hold"}
    assert not [id for id in drawn if id.startswith("queue-")]


def test_lines_that_lead_the_same_way_become_one_with_all_their_ids() -> None:
    inner = {"a": {"on": {"quit": "Z", "go": "b"}}, "b": {"on": {"stop": "Z"}, "after": {"5s": "Z"}}}
    made = outline({"id": "m", "initial": "A", "states": {"A": {"initial": "a", "states": inner}, "Z": {}}})
    line = parsed(diagrams.draw(made, folds=diagrams.top_level(made)))["edge-t1"]
    assert line.get("data-transition") == "t1 t3 t4"
    assert texts(line, "event") == ["quit, stop, after 5 s"]
    index = diagrams.index(made, folds=diagrams.top_level(made))
    assert index["transitions"] == {"t1": "edge-t1", "t3": "edge-t1", "t4": "edge-t1"}
    assert index["states"] == {"A": "state-1", "a": "state-1", "b": "state-1", "Z": "state-4"}


def test_flat_machines_have_no_other_view() -> None:
    assert diagrams.foldable(outline(example("activation"))) == ()


def test_a_parallel_machine_folds_to_its_regions() -> None:
    regions = {name: {"initial": f"{name}1", "states": {f"{name}1": {}}} for name in ("a", "b")}
    made = outline({"id": "m", "type": "parallel", "states": regions})
    drawn = parsed(diagrams.draw(made, folds=diagrams.top_level(made)))
    assert "parallel" in (drawn["state-1"].get("class") or "").split()
    assert {drawn[id].get("class") for id in ("state-2", "state-4")} == {"node state compound region folded"}


@for_each("name", NASTY)
def test_a_state_around_others_may_have_any_name(name: str) -> None:
    inner = {"in": {"on": {"go": {"target": "out", "guard": f"s == {name!r}"}}}, "h": {"type": "history"}}
    states = {name: {"initial": "in", "states": inner, "entry": {"log": repr(name)}}, "out": {}}
    made = outline({"id": "m", "initial": name, "context": {"s": ""}, "states": states})
    for svg in (diagrams.draw(made), diagrams.draw(made, folds=diagrams.top_level(made))):
        drawn = parsed(svg)
        assert drawn["state-1"].get("data-state") == name
        assert "script" not in {part.tag.split("}")[-1] for part in drawn["state-1"].iter()}
    graphviz_host().lay_out(diagrams.dot(made), "svg", PLENTY)


def test_the_dot_for_other_tools_has_a_cluster_for_each_state_around_others() -> None:
    source = diagrams.dot(DELIVERY)
    assert source.count("subgraph") - source.count("subgraph {") >= 4
    answer = json.loads(graphviz_host().lay_out(source, "json0", PLENTY))
    clusters = {part["name"]: part["label"] for part in answer["objects"] if part["name"].startswith("cluster-")}
    tree = Tree(DELIVERY)
    wanted = {f"cluster-{state.index}": state.name for state in DELIVERY.states if tree.is_cluster(state)}
    assert {id: label.split("\\l")[0] for id, label in clusters.items()} == wanted
    assert [edge["lhead"] for edge in answer["edges"] if edge.get("tooltip", "").startswith("t2:")] == ["cluster-2"]
