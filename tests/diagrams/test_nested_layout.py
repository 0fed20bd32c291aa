"""States in states: each within the one around it, lines that arrive, and all of it fast."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import diagrams
from machines.diagrams.layout import levels
from machines.diagrams.layout.graphviz import graphviz_host
from machines.diagrams.layout.state_tree import Tree, fold
from machines.engine.definitions import Outline, outline
from tests.engine.definitions.strategies import charts

from .places import below_heading, faults
from .samples import example, large, parsed, tangled


@pytest.fixture(scope="module", autouse=True)
def _graphviz_is_compiled() -> None:
    graphviz_host()


def places(made: Outline) -> levels.Layout:
    return levels.lay_out(Tree(made))


@settings(max_examples=60)
@given(charts())
def test_any_chart_is_laid_out_within_itself(definition: dict) -> None:
    made = outline(definition)
    assert faults(Tree(made), places(made)) == []


@settings(max_examples=20)
@given(charts())
def test_any_chart_is_laid_out_without_graphviz_too(definition: dict) -> None:
    made = outline(definition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "TOO_MANY", -1)
        assert faults(Tree(made), places(made)) == []


@settings(max_examples=40)
@given(charts(), st.data())
def test_any_chart_can_be_drawn_with_any_of_its_states_folded(definition: dict, data: st.DataObject) -> None:
    made = outline(definition)
    choices = [diagrams.top_level(made)]
    if diagrams.foldable(made):
        choices.append(data.draw(st.frozensets(st.sampled_from(diagrams.foldable(made)))))
    for folds in choices:
        small = fold(made, folds, merged=True).outline
        tree = Tree(small, made)
        assert faults(tree, levels.lay_out(tree)) == []
        ids = parsed(diagrams.draw(made, folds=folds)).keys()
        index = diagrams.index(made, folds=folds)
        assert {*index["states"].values(), *index["transitions"].values(), *index["marks"]} <= ids
        hidden = {state.name for state in made.states} - {state.name for state in small.states}
        assert all(any(above in folds for above in Tree(made).ancestors(name)) for name in hidden)


@pytest.mark.parametrize("made", [outline(example("delivery")), tangled()], ids=["delivery", "tangled"])
def test_every_line_of_a_chart_arrives(made: Outline) -> None:
    assert faults(Tree(made), places(made)) == []


def test_two_hundred_states_take_a_fraction_of_the_work_that_is_allowed() -> None:
    made = large()
    assert len(made.states) >= 200
    svg = diagrams.draw(made)
    assert graphviz_host().used < 1.5e9
    assert faults(Tree(made), places(made)) == []
    assert len([id for id in parsed(svg) if id.startswith("state-")]) == len(made.states)


def test_the_top_level_of_two_hundred_states_is_small_and_little_work() -> None:
    made = large()
    whole = diagrams.draw(made)
    work = graphviz_host().used
    top = diagrams.draw(made, folds=diagrams.top_level(made))
    assert graphviz_host().used < work / 3
    assert len(top) < len(whole) / 8


def test_lines_that_go_down_leave_at_the_bottom_and_enter_at_the_top() -> None:
    made = outline(
        {
            "id": "m",
            "initial": "A",
            "states": {
                "A": {"initial": "a", "states": {"a": {"on": {"on": "b"}}}},
                "B": {"initial": "b", "states": {"b": {"on": {"back": "a"}}}},
            },
        }
    )
    found = places(made)
    above, below = found.boxes["state-1"], found.boxes["state-3"]
    assert above.bottom < below.top
    for edge, down in (("edge-t1", True), ("edge-t2", False)):
        heights = [y for _, y in found.curves[edge].points[::3]]  # those in between only bend the curve
        steps = [after - before for before, after in pairwise(heights)]
        assert all((step if down else -step) > -1 for step in steps)


def test_regions_stand_abreast_in_their_order_and_are_equally_tall() -> None:
    made = outline(example("delivery"))
    found = places(made)
    regions = [found.boxes[diagrams.index(made)["states"][name]] for name in ("Parcel", "Invoice", "Customer")]
    assert [box.left for box in regions] == sorted(box.left for box in regions)
    assert len({round(box.height) for box in regions}) == 1
    assert len({round(box.top) for box in regions}) == 1


def test_a_line_to_a_state_inside_begins_below_the_heading() -> None:
    made = tangled()
    found = places(made)
    assert found.curves["edge-t3"].points[0][1] == pytest.approx(below_heading(Tree(made), found, "A"))


def test_lines_from_a_state_around_others_to_itself_stand_below_each_other() -> None:
    found = places(tangled())
    box = found.boxes["state-2"]
    loops = [found.curves[edge] for edge in ("edge-t5", "edge-t6", "edge-t7")]
    assert all(loop.points[0][0] == pytest.approx(box.right) for loop in loops)
    heights = [loop.points[0][1] for loop in loops]
    assert heights == sorted(heights)
    assert all(box.top < y < box.bottom for y in heights)


def test_one_level_that_takes_too_much_work_leaves_the_others_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "FUEL", 20_000_000)
    made = large()
    assert faults(Tree(made), places(made)) == []


def test_a_level_asks_graphviz_for_nothing_a_user_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    host = graphviz_host()

    class Listening:
        used = 0

        def lay_out(self, source: str, format: str, fuel: int) -> bytes:
            asked.append(source)
            return host.lay_out(source, format, fuel)

    levels.ANSWERS.clear()
    monkeypatch.setattr(levels, "graphviz_host", Listening)
    names = {"Zanzibar": {"initial": "Quagga", "states": {"Quagga": {"on": {"yodel": "Quagga"}}}}}
    places(outline({"id": "xylophone", "initial": "Zanzibar", "states": names}))
    assert len(asked) == 2
    assert not [word for word in ("Zanzibar", "Quagga", "yodel", "xylophone") if word in json.dumps(asked)]
