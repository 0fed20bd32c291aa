"""Laying out: fast for what people write, bounded for what they do not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from machines import diagrams
from machines.diagrams.layout import levels
from machines.diagrams.layout.curves import Box, Layout
from machines.diagrams.layout.graphviz import Graphviz, LayoutFailed, graphviz_host
from machines.diagrams.layout.label_places import FAR, label_box, trace
from machines.diagrams.layout.labels import SMALL_LINE, label_size, transition_lines
from machines.diagrams.layout.routes import wires
from machines.diagrams.layout.state_tree import Tree, main_line
from machines.engine.definitions import Outline, outline

from .places import distance, faults
from .samples import chain, example, flat, one_state, parsed, ring

SMALL = "digraph { a -> b }"


@pytest.fixture(scope="module", autouse=True)
def _graphviz_is_compiled() -> None:
    graphviz_host()


def overlapping(boxes: dict[str, Box]) -> list[tuple[str, str]]:
    def apart(a: Box, b: Box) -> bool:
        return a.right <= b.left or b.right <= a.left or a.bottom <= b.top or b.bottom <= a.top

    names = sorted(boxes)
    return [(x, y) for x in names for y in names if x < y and not apart(boxes[x], boxes[y])]


def complete(places: Layout, made: Outline) -> bool:
    index = diagrams.index(made)
    nodes = {*index["states"].values(), *index["queues"].values(), "start"}
    edges = {*index["transitions"].values(), "edge-start"}
    return nodes == places.boxes.keys() and edges <= places.curves.keys()


@pytest.mark.parametrize("made", [chain(100), ring([f"s{n}" for n in range(100)], extra=1)], ids=["ring", "crossed"])
def test_a_hundred_states_take_a_fraction_of_the_work_that_is_allowed(made: Outline) -> None:
    """Graphviz does some two billion instructions a second."""
    svg = diagrams.draw(made)
    assert graphviz_host().used < 1.5e9
    assert len([id for id in parsed(svg) if id.startswith("state-")]) == 100


@pytest.mark.hostile
def test_the_largest_definition_is_drawn_whole() -> None:
    made = ring([f"s{n}" for n in range(500)], extra=4)
    svg = diagrams.draw(made, merged=False)
    assert svg.count(' class="edge transition') == 2500


@pytest.mark.parametrize("name", ["activation", "new_device"])
def test_no_state_or_queue_covers_another(name: str) -> None:
    made = outline(example(name))
    places = levels.lay_out(Tree(made))
    assert complete(places, made)
    assert overlapping(places.boxes) == []


@pytest.mark.parametrize(("made", "most"), [(chain(20), 0), (chain(120), 0), (flat(40), 10)])
def test_the_usual_way_through_is_drawn_straight(made: Outline, most: int) -> None:
    boxes, tree = levels.lay_out(Tree(made)).boxes, Tree(made)
    ids = {state.name: diagrams.state_id(state.index) for state in made.states}
    line = [boxes[ids[name]] for name in main_line(tree)[0]]
    assert sum(abs(one.x - other.x) > 2 for one, other in pairwise(line)) <= most


def test_the_same_machine_is_drawn_the_same_way_every_time() -> None:
    made = outline(example("new_device"))
    assert diagrams.draw(made) == diagrams.draw(made)


def test_a_guest_that_does_too_much_is_stopped_and_the_next_one_works() -> None:
    with pytest.raises(LayoutFailed, match="fuel"):
        graphviz_host().lay_out(diagrams.dot(chain(50)), "json0", 10**6)
    assert b"objects" in graphviz_host().lay_out(SMALL, "json0", 10**9)


def test_source_that_cannot_be_read_is_a_failure_and_the_next_one_works() -> None:
    with pytest.raises(LayoutFailed):
        graphviz_host().lay_out("digraph {", "json0", 10**9)
    assert b"objects" in graphviz_host().lay_out(SMALL, "json0", 10**9)


def test_threads_may_draw_at_the_same_time() -> None:
    made = outline(example("activation"))
    with ThreadPoolExecutor(6) as pool:
        drawn = list(pool.map(lambda _: diagrams.draw(made), range(30)))
    assert len(set(drawn)) == 1


@pytest.mark.parametrize("can_be_written", [True, False])
def test_graphviz_is_compiled_into_the_users_cache_where_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_be_written: bool
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir() if can_be_written else folder.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    assert b"objects" in Graphviz().lay_out(SMALL, "json0", 10**9)
    assert any(file.is_file() for file in folder.glob("wasmtime/modules/*/*")) == can_be_written


def test_a_long_chain_does_not_run_out_of_stack() -> None:
    assert complete(levels.lay_out(Tree(chain(500))), chain(500))


@pytest.fixture
def without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "TOO_MANY", 1)


@pytest.mark.parametrize("made", [outline(example("new_device")), outline(example("activation"))])
def test_the_grid_places_everything_without_graphviz(made: Outline, without_graphviz: None) -> None:
    places = levels.lay_out(Tree(made))
    assert complete(places, made)
    assert overlapping({name: box for name, box in places.boxes.items() if name != "start"}) == []


def test_more_transitions_than_graphviz_can_take_go_to_the_grid(
    monkeypatch: pytest.MonkeyPatch, without_graphviz: None
) -> None:
    monkeypatch.setattr(levels, "graphviz_host", pytest.fail)
    assert complete(levels.lay_out(Tree(outline(example("activation")))), outline(example("activation")))


def test_a_state_without_a_way_in_or_out_is_drawn() -> None:
    assert {"state-1", "state-2", "state-3"} <= parsed(diagrams.draw(one_state())).keys()


def test_the_label_of_a_line_to_itself_stands_clear_of_the_line_to_a_queue() -> None:
    actions = {"set": {"a": "a + 1", "b": "b + 1", "c": "c + 1"}}
    work = {"src": "work", "queue": "jobs", "onDone": {"target": "Done"}}
    states = {"Working": {"invoke": work, "on": {"note": {"actions": actions}}}, "Done": {}}
    made = outline({"id": "m", "initial": "Working", "context": {"a": 0, "b": 0, "c": 0}, "states": states})
    places = levels.lay_out(Tree(made, full=True))
    (loop,) = (t for t in made.states[0].transitions if not t.targets)
    label = places.curves[f"edge-{loop.id}"].label
    _, height = label_size(transition_lines(loop, made.states[0]))
    assert label is not None
    assert height == 4 * SMALL_LINE
    feed = places.curves["feeds-1-jobs"].points
    assert all(y > label[1] + height / 2 for _, y in feed)
    assert overlapping(places.boxes) == []


@pytest.mark.parametrize("count", [10, 40, 60])
def test_labels_stand_at_their_lines_and_clear_of_states_and_of_each_other(count: int) -> None:
    made = flat(count)
    tree = Tree(made)
    places = levels.lay_out(tree)
    labels = {wire.id: label_box(places.curves[wire.id], label_size(wire.lines)) for wire in wires(tree) if wire.lines}
    assert overlapping(places.boxes | {f"label of {id}": box for id, box in labels.items()}) == []
    for id, box in labels.items():
        assert min(_away(box, point) for point in trace(places.curves[id])) <= FAR


def _away(box: Box, point: tuple[float, float]) -> float:
    inside = box.left <= point[0] <= box.right and box.top <= point[1] <= box.bottom
    return 0 if inside else distance(box, point)


def test_a_line_that_runs_through_a_label_is_drawn_below_it() -> None:
    made = flat(60)
    tree = Tree(made)
    places = levels.lay_out(tree)
    drawn = list(parsed(diagrams.draw(made)))
    over = [
        (wire.id, id)
        for wire in wires(tree)
        if wire.lines
        for id, curve in places.curves.items()
        if drawn.index(id) > drawn.index(wire.id)
        and any(_away(label_box(places.curves[wire.id], label_size(wire.lines)), point) == 0 for point in trace(curve))
    ]
    assert over == []


def test_a_parallel_root_with_lines_between_its_regions_draws_each_from_a_state() -> None:
    regions = {f"R{n}": {"initial": f"a{n}", "states": {f"a{n}": {}, f"b{n}": {}}} for n in range(7)}
    for n in range(7):
        regions[f"R{n}"]["on"] = {"far": f"b{(n * 3 + 2) % 7}", "near": f"b{(n + 1) % 7}"}
        regions[f"R{n}"]["states"][f"a{n}"]["on"] = {"go": f"R{(n + 4) % 7}", "turn": f"b{(n + 2) % 7}"}
    made = outline({"id": "m", "type": "parallel", "states": regions})
    tree = Tree(made)
    assert faults(tree, levels.lay_out(tree)) == []
