"""The program of a chart: states inside states, history, timers, and a machine that behaves like a state."""

from __future__ import annotations

from machines.engine.definitions import compile
from tests.cases import for_each

from .builders import inside, machine, player


def state(definition, name):
    return next(state for state in compile(definition)["states"] if state["name"] == name)


def test_a_compound_state_in_full():
    assert compile(inside({"a": {"on": {"x": "b"}}, "b": {"type": "final"}}, onDone="out"))["states"] == [
        {
            "name": "C",
            "final": False,
            "kind": "compound",
            "initial": {"targets": [2]},
            "done": "done.state.C",
            "transitions": [
                {"id": "t1", "events": ["leave"], "target": 4},
                {"id": "t2", "events": ["done.state.C"], "target": 4},
            ],
        },
        {"name": "a", "final": False, "parent": 1, "transitions": [{"id": "t3", "events": ["x"], "target": 3}]},
        {"name": "b", "final": True, "parent": 1},
        {"name": "out", "final": True},
    ]


def test_a_parallel_state_has_no_initial_and_ends():
    found = state(player(), "on")
    assert (found["kind"], found["done"], "initial" in found) == ("parallel", "done.state.on", False)


def test_an_initial_may_have_actions_and_several_targets():
    assert state(player(), "track")["initial"] == {"targets": [9], "actions": [["log", ["str", "ready"]]]}
    definition = player(initial=["loud", "#playing"])
    assert compile(definition)["initial"] == {"targets": [6, 10]}
    assert compile(player(initial={"target": "on", "actions": {"log": "now"}}))["initial"] == {
        "targets": [2],
        "actions": [["log", ["now"]]],
    }
    assert compile(player(initial={"target": "on"}))["initial"] == 2


def test_an_initial_may_lead_deeper_than_one_level():
    deep = {"B": {"initial": "x", "states": {"x": {}, "y": {}}}}
    assert state(inside(deep, initial="B.y"), "C")["initial"] == {"targets": [4]}
    assert state(inside(deep, initial=".B.y"), "C")["initial"] == {"targets": [4]}


def test_a_history_leads_where_its_parent_begins_as_long_as_it_remembers_nothing():
    assert state(player(), "last") == {
        "name": "last",
        "final": False,
        "kind": "history",
        "parent": 2,
        "deep": True,
        "default": {"targets": [4, 8]},
    }
    shallow = state(inside({"a": {}, "h": {"type": "history"}, "b": {}}), "h")
    assert shallow["default"] == {"targets": [2]}
    assert "deep" not in shallow


@for_each("target", ["b", ["b"], {"target": "b"}, ".b", "#b", "C.b"])
def test_a_history_may_say_where_it_leads_at_first(target):
    history = {"type": "history", "history": "shallow", "target": target}
    assert state(inside({"a": {}, "h": history, "b": {}}), "h")["default"] == {"targets": [4]}


def test_the_default_of_a_history_may_have_actions():
    history = {"type": "history", "target": {"target": "b", "actions": {"log": "now"}}}
    default = state(inside({"a": {}, "h": history, "b": {}}), "h")["default"]
    assert default == {"targets": [4], "actions": [["log", ["now"]]]}


def test_a_final_state_has_data_for_the_end():
    final = {"type": "final", "output": {"n": "1 + 1", "who": None}}
    assert state(inside({"a": {"on": {"x": "b"}}, "b": final}, onDone="out"), "b")["donedata"] == [
        "obj",
        ["n", ["bin", "+", ["num", 1], ["num", 1]]],
        ["who", ["null"]],
    ]


def test_timers_wait_for_an_event_of_their_own():
    after = {
        "1000": "B",
        "1.5m": [{"guard": "n > 1", "target": "B"}, {"actions": {"log": "n"}}],
        "n * 10": {"target": "A", "reenter": True},
    }
    states = {"A": {"after": after, "on": {"x": "B"}}, "B": {"type": "final"}}
    assert compile(machine(states, context={"n": 0}))["states"][0]["transitions"] == [
        {"id": "t1", "events": ["x"], "target": 2},
        {"id": "t2", "events": ["after.t2"], "target": 2, "delay": ["num", 1000]},
        {
            "id": "t3",
            "events": ["after.t3"],
            "target": 2,
            "guard": ["because", "n > 1", ["cmp", ["data", "n"], [">", ["num", 1]]]],
            "text": "n > 1",
            "delay": ["num", 90000],
        },
        {"id": "t4", "events": ["after.t3"], "actions": [["log", ["data", "n"]]]},
        {
            "id": "t5",
            "events": ["after.t5"],
            "target": 1,
            "reenter": True,
            "delay": ["bin", "*", ["data", "n"], ["num", 10]],
        },
    ]


def test_events_of_timers_are_not_known_outside():
    states = {"A": {"after": {"1s": "B"}, "on": {"x": "B"}}, "B": {"type": "final"}}
    assert compile(machine(states))["known"] == ["x"]


def test_transitions_stand_in_order_on_invoke_done_after_then_always():
    parts = {
        "always": {"target": "out", "guard": "now < 0"},
        "after": {"1s": "out"},
        "onDone": "out",
        "invoke": {"src": "h", "onDone": "out"},
        "on": {"x": "out"},
    }
    (found, *_) = compile(inside({"a": {"on": {"y": "a"}}}, **parts))["states"]
    events = [(t["id"], t["events"][0]) for t in found["transitions"]]
    assert events == [("t1", "x"), ("t2", "done.invoke.C"), ("t3", "done.state.C"), ("t4", "after.t4")]
    assert found["always"][0]["id"] == "t5"


def test_children_are_numbered_after_their_parents_own_transitions():
    program = compile(player())
    ids = [t["id"] for state in program["states"] for t in state.get("transitions", [])]
    assert ids == [f"t{number}" for number in range(1, len(ids) + 1)]


def test_a_machine_that_behaves_like_a_state_is_the_first_state():
    definition = machine(on={"reset": "Shut"}, entry={"log": "now"})
    program = compile(definition)
    assert program["initial"] == 1
    assert program["states"][0] == {
        "name": "door",
        "final": False,
        "kind": "compound",
        "root": True,
        "initial": {"targets": [2]},
        "done": "done.state.door",
        "entry": [["log", ["now"]]],
        "transitions": [{"id": "t1", "events": ["reset"], "target": 2}],
    }
    assert [state.get("parent") for state in program["states"]] == [None, 1, 1]


@for_each("key", ["on", "always", "after", "entry", "exit", "invoke"])
def test_an_empty_behaviour_is_none(key):
    assert compile(machine(**{key: {} if key in ("on", "after") else []})) == compile(machine())


def test_a_machine_may_be_all_parallel():
    program = compile({"id": "both", "type": "parallel", "states": {"A": {"on": {"x": {"actions": []}}}, "B": {}}})
    assert program["initial"] == 1
    assert (program["states"][0]["kind"], program["states"][0]["root"]) == ("parallel", True)
    assert "initial" not in program["states"][0]


def test_a_state_that_is_called_like_the_machine_keeps_its_name():
    definition = machine({"door": {"on": {"x": "B"}}, "B": {"type": "final"}}, entry={"log": "now"})
    assert [state["name"] for state in compile(definition)["states"]] == ["(machine)", "door", "B"]


def test_the_machine_has_data_for_its_end():
    assert compile(machine(output={"a": "now"}))["output"] == ["obj", ["a", ["now"]]]


def test_errors_are_raised_where_the_definition_says_so_or_listens_for_them():
    def errors(event="go", **parts):
        states = {"A": {"on": {event: "B"}, "invoke": {"src": "h"}}, "B": {"type": "final"}}
        return compile(machine(states, **parts)).get("errors")

    assert errors() is None
    assert errors(errors="refuse") is None
    assert errors(errors="raise") == "raise"
    for event in ("error", "error.*", "error.execution", "error.communication"):
        assert errors(event) == "raise"
    for event in ("error.invoke.A", "error.invoke.*", "*", "errors", "error2.x"):
        assert errors(event) is None
    assert errors("error.execution", errors="refuse") is None


def test_an_event_is_facts_as_well_as_a_payload():
    definition = inside({"a": {"on": {"x": {"target": "a", "guard": "trigger.type == 'external'"}}}})
    guard = compile(definition)["states"][1]["transitions"][0]["guard"]
    assert guard[2] == ["cmp", ["get", ["trigger"], ["str", "type"]], ["==", ["str", "external"]]]


def test_in_takes_the_name_of_any_state():
    states = {"a": {"on": {"x": {"target": "a", "guard": 'In("C") and not In("out")'}}}}
    assert compile(inside(states))["states"][1]["transitions"][0]["guard"][1][2] == ["in", "C"]
