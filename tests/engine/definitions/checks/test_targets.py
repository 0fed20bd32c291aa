"""The ways to name a state, and what a transition may lead to at once."""

from __future__ import annotations

import pytest

from machines.engine.definitions import compile
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, machine, player


def target(written, source=("on", "volume", "idle"), **parts):
    """The names of the states a target of a nested state leads to."""
    definition = player(**parts)
    state = {"states": definition["states"]}
    for key in source:
        state = state["states"][key]
    state.setdefault("on", {})["go"] = {"target": written}
    program = compile(definition)
    (found,) = [t for s in program["states"] for t in s.get("transitions", []) if t["events"] == ["go"]]
    indexes = found.get("targets", [found.get("target")])
    return [program["states"][index - 1]["name"] for index in indexes]


@for_each(
    "written, name",
    [
        ("loud", "loud"),
        ("idle", "on.volume.idle"),  # beside it, though there are two
        ("volume", "volume"),
        ("playing", "playing"),  # anywhere: there is one
        ("on.track.idle", "on.track.idle"),
        ("#on.track.idle", "on.track.idle"),
        ("#track.idle", "on.track.idle"),
        ("#playing", "playing"),
        ("#on.last", "last"),
        ("#player.on.track", "track"),
        ("#player.off", "off"),
    ],
)
def test_a_target_may_be_written_in_these_ways(written, name):
    assert target(written) == [name]


def test_a_dot_leads_inside():
    assert target(".track.idle", source=("on",)) == ["on.track.idle"]
    assert target("on.track.idle", source=("off",)) == ["on.track.idle"]


def test_keys_with_dots_are_found_whole_first():
    states = {"A": {"on": {"x": "b.c", "y": "B.in.side"}}, "b.c": {}, "b": {"initial": "c", "states": {"c": {}}}}
    states["B"] = {"initial": "in.side", "states": {"in.side": {}}}
    transitions = compile(machine(states))["states"][0]["transitions"]
    assert [t["target"] for t in transitions] == [2, 6]


def test_several_targets_lead_into_several_regions():
    assert target(["loud", "#playing"], source=("off",)) == ["loud", "playing"]
    assert target(["last"], source=("on", "track")) == ["last"]


@for_each("targets", [["loud", "volume"], ["loud", "silent"], ["off", "on"], ["loud", "loud"], ["last", "loud"]])
def test_targets_that_cannot_be_active_at_once_are_an_error(targets):
    definition = player({"off": {"on": {"go": {"target": targets}}}})
    (line,) = [line for line in found(definition) if line.startswith("SB122")]
    assert line.startswith("SB122 states.off.on.go.target: the targets")


def test_an_empty_list_of_targets_is_an_error():
    assert "SB104" in codes(player({"off": {"on": {"power": "on", "resume": "on.last", "go": {"target": []}}}}))


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("ofn", 'no state "ofn"; did you mean "on"?'),
        ("#plyaing", 'no state "#plyaing"; did you mean "#playing"?'),
        (".trak", 'no state ".trak"; did you mean ".track"?'),
        ("on.trakc", 'no state "on.trakc"'),
    ],
)
def test_a_target_that_is_not_there_comes_with_the_nearest(written, hint):
    definition = player()
    definition["states"]["on"]["on"]["go"] = written
    assert f"SB101 states.on.on.go: {hint}" in found(definition)[0]


def test_a_dot_on_a_state_without_states_says_so():
    line = found(machine({"A": {"on": {"x": ".B"}}, "B": {}}))[0]
    assert line == 'SB101 states.A.on.x: no state ".B"; "A" has no states inside; write the name without the dot'


def test_the_machine_itself_may_be_a_target():
    definition = player({"end": {"on": {"again": "#player"}}})
    program = compile(definition)
    assert program["states"][0] == {
        "name": "player",
        "final": False,
        "kind": "compound",
        "root": True,
        "initial": {"targets": [2]},
        "done": "done.state.player",
    }
    assert program["states"][-1]["transitions"][0]["target"] == 1
