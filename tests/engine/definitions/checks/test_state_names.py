"""What a state is called: its id, else its key, else the way to it."""

from __future__ import annotations

from machines.engine.definitions import compile, outline
from tests.engine.definitions.builders import codes, found, inside, machine, player


def names(definition):
    return [state["name"] for state in compile(definition)["states"]]


def test_a_key_that_stands_once_is_the_name():
    assert names(inside({"a": {}, "b": {}})) == ["C", "a", "b", "out"]


def test_a_key_that_stands_twice_gives_way_to_the_path():
    assert names(player()) == [
        "off",
        "on",
        "last",
        "volume",
        "on.volume.idle",
        "loud",
        "silent",
        "track",
        "on.track.idle",
        "playing",
        "over",
        "end",
    ]


def test_an_id_is_the_name_and_takes_the_key_of_another_away():
    assert names(inside({"a": {"id": "first"}, "b": {}})) == ["C", "first", "b", "out"]
    assert names(inside({"a": {"id": "b"}, "b": {}})) == ["C", "b", "C.b", "out"]


def test_states_stand_in_document_order_parents_before_children():
    states = compile(player())["states"]
    assert [state.get("parent") for state in states] == [None, None, 2, 2, 4, 4, 4, 2, 8, 8, 8, None]
    assert [state.index for state in outline(player()).states] == list(range(1, 13))


def test_two_states_of_one_name_are_an_error():
    line = found(inside({"a": {"id": "same"}, "b": {"id": "same"}}))[0]
    assert line.startswith('SB115 states.C.states.b: another state is called "same" too')


def test_the_key_of_a_top_state_that_is_the_id_of_another_is_an_error():
    assert "SB115" in codes(machine({"A": {"on": {"x": "B"}}, "B": {"id": "A", "on": {"x": "A"}}}))


def test_a_path_that_is_too_long_asks_for_an_id():
    holder = {"initial": "y", "states": {"y": {}}}
    lines = found(inside({"x" * 60: {"initial": "z" * 60, "states": {"z" * 60: holder}}, "w": holder}))
    assert [line.rpartition("; ")[2] for line in lines if "SB107" in line] == ['give the state an "id"']


def test_an_id_is_checked_like_a_name():
    assert 'SB107 states.C.states.a.id: the id " a" must not' in found(inside({"a": {"id": " a"}}))[0]
    assert "SB104 states.C.states.a.id" in found(inside({"a": {"id": 3}}))[0]


def test_the_events_of_a_path_hold_no_dot_that_reads_as_a_longer_event():
    regions = {key: {"initial": "work", "states": {"work": {"initial": "x", "states": {"x": {}}}}} for key in "ab"}
    states = {"P": {"type": "parallel", "states": regions, "on": {"leave": "out"}}, "out": {"type": "final"}}
    program = compile(machine(states))
    done = {state["name"]: state["done"] for state in program["states"] if "done" in state}
    assert done["a"] == "done.state.a"
    assert done["P.a.work"] == "done.state.P_a_work"


def test_ends_that_cannot_be_told_apart_are_an_error():
    work = {"initial": "x", "states": {"x": {}}, "on": {"go": "out"}}
    states = {"a b": work | {}, "a_b": work | {}, "out": {"type": "final"}}
    assert any(
        'SB115 states.a_b: another state ends with "done.state.a_b" too' in line for line in found(machine(states))
    )
