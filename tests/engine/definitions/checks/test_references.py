"""Names that do not exist are found wherever they stand, with the nearest one that does."""

from __future__ import annotations

from machines.engine.definitions import check
from tests.cases import for_each
from tests.engine.definitions.builders import found, machine, with_action, with_guard, with_transition

PAYLOAD = {"events": {"go": {"payload": {"token": {"type": "string"}}}}}


def test_an_unknown_target_comes_with_the_nearest_state():
    states = {"Waiting": {"on": {"entitle": [{"target": "Actve"}]}}, "Active": {"type": "final"}}
    assert found(machine(states)) == [
        'SB101 states.Waiting.on.entitle[0].target: no state "Actve"; did you mean "Active"?'
    ]


@for_each("target", ["B", "#B", "#m.B", "#bee", ["B"]])
def test_a_target_may_be_written_in_these_ways(target):
    states = {"A": {"on": {"go": {"target": target}}}, "B": {"type": "final", "id": "bee"}}
    assert found(machine(states, id="m")) == []


def test_an_unknown_initial_state_is_found():
    assert 'SB101 initial: no state "Shutt"; did you mean "Shut"?' in found(machine(initial="Shutt"))


def test_a_target_written_as_plain_text_is_checked_too():
    assert 'SB101 states.A.on.go: no state "b"; did you mean "B"?' in found(with_transition("b"))


def test_unknown_data_fields_are_found_in_guards_values_and_actions():
    assert 'SB102 states.A.on.go.guard: no data field "names"; did you mean "name"?' in found(
        with_guard("names == 'x'")
    )
    assert 'SB102 states.A.on.go.actions.set.naem: no data field "naem"; did you mean "name"?' in found(
        with_action({"set": {"naem": "n"}})
    )
    assert 'SB102 states.A.on.go.actions.unset[1]: no data field "tag"; did you mean "tags"?' in found(
        with_action({"unset": ["n", "tag"]})
    )


def test_a_field_inside_a_literal_has_the_path_of_its_own_text():
    paths = [finding.path for finding in check(with_action({"set": {"extra": {"a b": [1, "nope"]}}}))]
    assert paths == ['states.A.on.go.actions.set.extra["a b"][1]']


def test_unknown_payload_fields_of_a_declared_event_are_found():
    assert 'SB103 states.A.on.go.guard: no field of the event "go" called "tokn"; did you mean "token"?' in found(
        with_guard("event.tokn == name", **PAYLOAD)
    )
    assert "SB103" in found(with_guard("event['tokn'] == name", **PAYLOAD))[0]


def test_payload_fields_of_undeclared_events_are_free():
    assert found(with_guard("event.anything == name")) == []
    assert found(with_guard("event.anything == name", events={"go": {}})) == []


def test_a_longer_declared_event_may_carry_other_fields():
    events = {"go": {"payload": {"a": ""}}, "go.home": {"payload": {"b": ""}}}
    assert found(with_guard("event.b == name", events=events)) == []


def test_a_bare_payload_field_is_pointed_to_the_event():
    assert found(with_guard("token == name", **PAYLOAD))[0].endswith("the payload's field is event.token")


def test_a_bare_state_name_is_pointed_to_quotes():
    states = {
        "A": {"on": {"go": {"target": "Finished", "actions": {"set": {"s": "Finished"}}}}},
        "Finished": {"type": "final"},
    }
    assert found(machine(states, context={"s": ""}))[0].endswith("a text needs quotes of its own: \"'Finished'\"")


def test_what_work_that_ended_brings_is_known():
    def after(event, guard):
        invoke = {"src": "h", event: {"target": "B", "guard": guard}}
        return machine({"A": {"invoke": invoke, "on": {"stop": "B"}}, "B": {"type": "final"}})

    assert found(after("onDone", "event.result.token")) == []
    assert found(after("onError", "event.error and event.kind and event.attempts > 1")) == []
    assert 'called "reslt"; did you mean "result"?' in found(after("onDone", "event.reslt"))[0]
    assert "SB103" in found(after("onError", "event.result"))[0]


def test_in_names_a_state():
    assert found(with_guard('In("A")')) == []
    assert 'SB101 states.A.on.go.guard: no state "a"; did you mean "A"?' in found(with_guard('In("a")'))


def test_facts_of_the_instance_are_known():
    assert found(with_guard("instance.id and instance.machine and instance.revision and instance.state")) == []
    assert "SB121" in found(with_guard("instance.data"))[0]
    assert 'did you mean "revision"?' in found(with_guard("instance.version > 1"))[0]


def test_functions_come_with_the_nearest_one():
    assert 'no function "lenn" in "lenn(name)"; did you mean "len"?' in found(with_guard("lenn(name)"))[0]


def test_raised_data_is_held_against_the_declaration():
    raised = {"raise": {"event": "go", "data": {"tokn": "name"}}}
    assert "SB103" in found(with_action(raised, **PAYLOAD))[0]


def test_ids_that_cannot_be_told_apart_are_found():
    def invoking(*ids):
        return machine(
            {"A": {"invoke": [{"src": "h", "id": id} for id in ids], "on": {"x": "B"}}, "B": {"type": "final"}}
        )

    assert found(invoking("a", "b")) == []
    assert "SB115 states.A.invoke[1]: another invoke has the id" in found(invoking("a", "a"))[0]
    assert "begins with another's" in found(invoking("a", "a.b"))[0]


def test_two_states_with_the_same_invoke_id_are_found():
    one = {"invoke": {"src": "h", "id": "same"}}
    states = {"A": {**one, "on": {"x": "B"}}, "B": {**one, "on": {"x": "A"}}}
    assert found(machine(states))[0].startswith("SB115 states.B.invoke")
