"""Doubts that do not stop publishing."""

from __future__ import annotations

from machines.engine.definitions import check, compile
from tests.engine.definitions.builders import codes, found, machine, with_guard, with_transition


def only_warnings(definition):
    compile(definition)
    return [line.split(":")[0] for line in found(definition)]


def test_a_machine_without_faults_has_no_findings():
    assert check(machine()) == []


def test_a_state_nothing_leads_to():
    states = {"A": {"on": {"x": "B"}}, "B": {"type": "final"}, "Island": {"on": {"x": "B"}}}
    assert only_warnings(machine(states)) == ["SB201 states.Island"]


def test_a_state_that_only_itself_leads_to_is_not_reached():
    states = {"A": {"on": {"x": "B"}}, "B": {"type": "final"}, "Loop": {"on": {"x": "Loop", "y": "B"}}}
    assert only_warnings(machine(states)) == ["SB201 states.Loop"]


def test_a_state_without_a_way_out():
    states = {"A": {"on": {"x": "Trap"}}, "Trap": {"on": {"x": {"actions": {"log": "now"}}, "y": "Trap"}}}
    assert only_warnings(machine(states)) == ["SB202 states.Trap"]


def test_a_way_that_could_not_be_read_is_not_missing():
    states = {"A": {"on": {"x": "Bee"}}, "B": {"type": "final"}}
    assert codes(machine(states)) == ["SB101"]


def test_a_transition_after_one_without_a_guard():
    assert only_warnings(with_transition(["B", {"guard": "n < 3", "target": "B"}])) == ["SB203 states.A.on.go[1]"]


def test_a_pattern_shadows_what_it_covers():
    states = {"A": {"on": {"door.*": "B", "door.open": "B", "doors": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == ['SB203 states.A.on["door.open"]']
    states = {"A": {"on": {"*": "B", "x": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == ["SB203 states.A.on.x"]


def test_a_short_name_shadows_longer_ones():
    states = {"A": {"on": {"door": "B", "door.open": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == ['SB203 states.A.on["door.open"]']


def test_the_other_way_round_nothing_is_shadowed():
    states = {"A": {"on": {"door.open": "B", "door": "B", "*": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == []


def test_a_chain_of_guards_without_an_else():
    chain = [{"guard": "n < 3", "target": "B"}, {"guard": "n > 5", "target": "B"}]
    assert only_warnings(with_transition(chain)) == ["SB204 states.A.on.go"]
    assert only_warnings(with_transition([*chain, {"target": "B"}])) == []
    assert only_warnings(with_transition(chain[:1])) == []


def test_an_else_may_be_a_pattern():
    chain = [{"guard": "n < 3", "target": "B"}, {"guard": "n > 5", "target": "B"}]
    states = {"A": {"on": {"go": chain, "*": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states, context={"n": 0})) == []


def test_keys_without_effect():
    assert only_warnings(machine(version=3, retain="30d")) == ["SB205 version"]


def test_a_declared_event_nobody_listens_for():
    assert only_warnings(machine(events={"opne": {}})) == ["SB207 events.opne"]


def test_a_raised_event_nobody_listens_for():
    assert only_warnings(with_transition({"actions": {"raise": "nobody"}})) == ["SB208 states.A.on.go.actions.raise"]


def test_the_end_of_work_that_is_not_there():
    invoke = {"src": "h", "id": "work"}
    on = {"done.invoke.wrok": "B", "done.invoke.work": "B", "error.invoke.*": "B"}
    definition = machine({"A": {"invoke": invoke, "on": on}, "B": {"type": "final"}})
    assert found(definition) == [
        'SB209 states.A.on["done.invoke.wrok"]: the state has no invoke "wrok", so this never happens;'
        ' did you mean "work"?'
    ]


def test_a_guard_that_is_literally_false():
    assert only_warnings(with_guard(False)) == ["SB210 states.A.on.go.guard"]
    assert only_warnings(with_guard(True)) == []


def test_events_of_a_state_that_is_left_at_once():
    states = {"A": {"always": "B", "on": {"x": "B"}}, "B": {"type": "final"}}
    assert only_warnings(machine(states)) == ["SB211 states.A.on.x"]


def test_a_final_state_with_a_way_out_is_an_error():
    states = {"A": {"on": {"x": "B"}}, "B": {"type": "final", "on": {"x": "A"}, "invoke": {"src": "h", "onDone": "A"}}}
    assert [line.split(":")[0] for line in found(machine(states))] == ["SB117 states.B.on", "SB117 states.B.invoke"]


def test_circles_of_always_that_are_certain_are_errors():
    circle = {"A": {"on": {"x": "B"}}, "B": {"always": "C"}, "C": {"always": [{"guard": False}, {"target": "B"}]}}
    assert "SB118" not in codes(machine(circle))  # the second of C is not certain to the eye of this check
    circle["C"] = {"always": "B"}
    assert 'SB118 states.B.always: always transitions form an endless cycle: "B" → "C" → "B"' in found(machine(circle))


def test_an_always_that_stays_where_it_is_goes_round_for_ever():
    assert "SB118" in codes(machine({"A": {"always": {"actions": {"log": "now"}}}}))
