"""``engine.simulate``: a made-up instance, its inputs and its records."""

import pytest

from machines.engine import BadInput, BadPayload, DefinitionError, Suspended, UnknownInstance
from tests.cases import for_each
from tests.engine.builders import counter, door, errand, fields, machine

ORDER = machine(
    "order",
    {
        "Cart": {
            "on": {
                "add": {"guard": "event.qty < 5", "actions": {"set": {"n": "n + event.qty"}}},
                "pay": {"guard": "n > 0", "target": "Paying"},
            }
        },
        "Paying": {
            "invoke": {"src": "charge", "id": "charge", "onDone": "Paid", "onError": "Failed"},
            "after": {"30s": "Failed"},
        },
        "Failed": {"entry": [{"log": "n"}], "on": {"retry": "Paying"}, "after": {"5m": "Gone"}},
        "Paid": {"type": "final"},
        "Gone": {"type": "final"},
    },
    context={"n": 0},
    events={"add": {"payload": {"qty": {"type": "integer", "required": True}}}},
)


def run(engine, *events, definition=ORDER, **given):
    """Return the records after the creation."""
    return engine.simulate(definition, events, **given)[1:]


def test_nothing_is_stored(engine):
    engine.simulate(ORDER, [("add", {"qty": 2}), "pay", {"advance": "1h"}])
    assert not engine.client.keys(f"{engine.keys.prefix}{{order*")


def test_the_creation_comes_first(engine):
    (first,) = engine.simulate(ORDER, [])
    assert (first.input, first.event, first.outcome, first.state) == (-1, "(create)", "taken", "Cart")
    assert first.data == {"n": 0}


def test_each_record_has_the_explanation_with_its_values(engine):
    refused, taken = run(engine, ("add", {"qty": 7}), ("add", {"qty": 2}))
    assert refused.outcome == "refused"
    assert refused.explanation.candidates[0].because[0].values == {"event.qty": 7}
    assert taken.explanation.outcome["data"] == {"n": 2} == taken.data == taken.changes
    assert taken.transitions == [candidate.id for candidate in taken.explanation.candidates]


def test_events_that_would_be_taken_next(engine):
    (first,) = engine.simulate(ORDER, [])
    assert first.next == [{"event": "add", "verdict": "payload"}, {"event": "pay", "verdict": "guard"}]
    (added,) = run(engine, ("add", {"qty": 1}))
    assert {"event": "pay", "verdict": "taken"} in added.next


def test_the_clock_fires_timers_in_order(engine):
    *_, paying, failed, gone = run(engine, ("add", {"qty": 1}), "pay", {"advance": "1h"})
    assert [timer.due for timer in paying.timers] == [paying.at + 30_000]
    assert (failed.state, failed.at) == ("Failed", paying.at + 30_000)
    assert (gone.state, gone.at, gone.done) == ("Gone", failed.at + 300_000, True)
    assert failed.input == gone.input == 2


def test_the_clock_goes_to_the_next_timer(engine):
    *_, failed = run(engine, ("add", {"qty": 1}), "pay", {"advance": "next"})
    assert failed.state == "Failed"
    assert failed.log == [{"kind": "log", "name": "log", "data": 1}]


def test_without_a_timer_the_clock_only_moves(engine):
    (waited,) = run(engine, {"advance": 500})
    assert (waited.outcome, waited.event) == ("waited", "")


@pytest.mark.parametrize(
    ("end", "state"), [({"done": {"id": 7}}, "Paid"), ({"done": None}, "Paid"), ({"failed": "no money"}, "Failed")]
)
def test_a_job_ends_as_it_is_told(engine, end, state):
    *_, paying, ended = run(engine, ("add", {"qty": 1}), "pay", {"job": "charge", **end})
    assert [job["src"] for job in paying.requested] == ["charge"]
    assert ended.state == state
    assert not ended.jobs


def test_a_step_that_leaves_the_state_withdraws_its_job(engine):
    busy, idle = run(engine, "start", "abandon", definition=errand())
    assert busy.jobs == idle.withdrawn
    assert not idle.jobs


def test_children_are_started_and_end(engine):
    parent = machine(
        "parent",
        {
            "Working": {
                "invoke": {"src": "machine:door", "id": "kid", "onDone": "Done", "onError": "Bad"},
                "on": {"hello": {"actions": {"set": {"word": "event.word"}}}},
            },
            "Done": {},
            "Bad": {},
        },
        context=fields(word="string"),
    )
    (first,) = engine.simulate(parent, [])
    assert [child["machine"] for child in first.started] == ["door"]
    told, done = run(
        engine,
        {"child": "kid", "event": "hello", "payload": {"word": "x"}},
        {"child": "kid", "done": {"a": 1}},
        definition=parent,
    )
    assert told.data == {"word": "x"}
    assert done.state == "Done"
    assert run(engine, {"child": "kid", "failed": "gone"}, definition=parent)[0].state == "Bad"


def test_messages_come_and_go(engine):
    relay = machine(
        "relay",
        {"On": {"on": {"ping": {"actions": {"send": {"event": "pong", "to": {"machine": "door", "id": "'front'"}}}}}}},
        accepts={"from": ["door"]},
    )
    sent, refused = run(
        engine,
        {"message": "ping", "from": {"machine": "door", "id": "x"}},
        {"message": "ping", "from": {"machine": "thief", "id": "x"}},
        definition=relay,
    )
    assert [(m["machine"], m["id"], m["event"]) for m in sent.messages] == [("door", "front", "pong")]
    assert refused.outcome == "bad payload"
    assert "thief" in refused.error


def test_allow_is_checked_where_groups_are_given(engine):
    guarded = machine("guarded", {"A": {"on": {"go": {"target": "B", "allow": ["boss"]}}}, "B": {}})
    refused, taken = run(
        engine, {"event": "go", "groups": ["clerk"]}, {"event": "go", "groups": ["boss"]}, definition=guarded
    )
    assert refused.outcome == "not allowed"
    assert refused.not_allowed["groups"] == ["boss"]
    assert taken.taken


def test_a_payload_that_does_not_fit_is_a_record(engine):
    (bad,) = run(engine, ("add", {"qty": "two"}))
    assert bad.outcome == "bad payload"
    assert "qty" in bad.error


def test_data_that_does_not_fit_is_an_error(engine):
    with pytest.raises(BadPayload) as found:
        engine.simulate(counter(), [], {"n": "many"})
    assert found.value.field == "n"


def test_a_published_machine_is_simulated_by_its_name(engine):
    engine.publish(door())
    assert run(engine, "open", definition="door")[0].state == "Open"


def test_a_machine_that_cannot_begin(engine):
    broken = machine("broken", {"A": {"entry": {"set": {"n": "1 / zero"}}}}, context={"n": 0, "zero": 0})
    (only,) = engine.simulate(broken, ["go"])
    assert (only.outcome, only.configuration) == ("failed", [])
    assert only.error


def test_a_step_of_too_much_work_is_stopped(engine):
    spin = machine(
        "spin",
        {
            "A": {"on": {"go": "B"}},
            "B": {"always": {"target": "C"}},
            "C": {"always": {"guard": "n < 9", "target": "B"}},
        },
        context={"n": 0},
    )
    (spun,) = run(engine, "go", definition=spin)
    assert spun.outcome == "failed"
    assert "microsteps" in spun.error


def test_a_run_without_end_is_stopped(engine):
    restless = machine("restless", {"A": {"after": {"1ms": {"target": "A", "reenter": True}}}})
    with pytest.raises(BadInput) as found:
        engine.simulate(restless, [{"advance": "1d"}])
    assert found.value.code == "SB638"


def test_many_inputs_go_in_several_calls(engine):
    records = run(engine, *["open", "close"] * 450, definition=door())
    assert [record.input for record in records] == list(range(900))
    assert records[-1].revision == 901


@for_each(
    "event",
    [
        7,
        {},
        {"event": ""},
        {"event": "a", "when": 1},
        {"advance": "soon"},
        {"advance": -1},
        {"advance": 1.5},
        {"job": "charge"},
        {"job": "charge", "done": 1, "failed": "x"},
        {"child": "kid"},
        {"event": "a", "groups": "b"},
        {"message": "a"},
        {"job": "nobody", "done": 1},
        {"child": "kid", "done": 1},
        "done.state.A",
        ("a", 1, 2),
    ],
)
def test_an_input_that_makes_no_sense(engine, event):
    with pytest.raises(BadInput) as found:
        engine.simulate(ORDER, ["pay", event])
    assert found.value.code == "SB637"
    assert "events[1]" in str(found.value)


@pytest.mark.parametrize("payload", [{"x": float("nan")}, {"x": object()}, {1: 2}])
def test_a_payload_that_is_no_json(engine, payload):
    with pytest.raises(BadPayload):
        engine.simulate(ORDER, [("add", payload)])


def test_one_event_is_not_a_list(engine):
    with pytest.raises(BadInput):
        engine.simulate(ORDER, "pay")


def test_a_definition_with_errors_is_refused(engine):
    with pytest.raises(DefinitionError):
        engine.simulate({"id": "x", "initial": "Nowhere", "states": {"A": {}}}, [])


def test_a_parent_gets_the_events_sent_to_it(engine):
    child = machine("kid", {"A": {"entry": {"send": {"event": "hi", "to": "'#_parent'"}}}})
    (first,) = engine.simulate(child, [], parent={"machine": "m", "id": "a", "invoke": "i"})
    assert [(m["machine"], m["event"]) for m in first.messages] == [("m", "hi")]


def test_a_record_is_plain_data(engine):
    import json

    assert json.loads(json.dumps(run(engine, "pay")[0].as_dict()))["state"] == "Cart"


# A copy of an instance that is there


def test_a_copy_takes_events_and_the_instance_stays(engine):
    engine.publish(ORDER)
    engine.create("order", "x", {"n": 3})
    before = engine.get("order", "x")
    edited, refused, taken = engine.preview_events("order", "x", [{"edit": {"n": 0}}, "pay", ("add", {"qty": 2})])
    assert (edited.event, edited.outcome, edited.data, edited.revision) == ("(edit)", "taken", {"n": 0}, 2)
    assert (refused.outcome, refused.explanation.candidates[0].because[0].values) == ("refused", {"n": 0})
    assert (taken.outcome, taken.data) == ("taken", {"n": 2})
    assert engine.get("order", "x") == before


def test_with_data_an_instance_is_created_first(engine):
    engine.publish(ORDER)
    created, paid = engine.preview_events("order", "new", ["pay"], {"n": 1})
    assert (created.event, paid.state) == ("(create)", "Paying")
    with pytest.raises(UnknownInstance):
        engine.preview_events("order", "new", ["pay"])


def test_what_cannot_be_tried_says_why(engine):
    engine.publish(ORDER)
    engine.create("order", "x")
    (failed,) = engine.preview_events("order", "x", [{"edit": {"m": 1}}])
    assert (failed.outcome, failed.error) == ("failed", "no data field 'm'")
    for wrong in ({"edit": 3}, {"edit": {"n": 1}, "payload": {}}):
        with pytest.raises(BadInput):
            engine.preview_events("order", "x", [wrong])
    engine.suspend("order", "x", actor="ann", reason="a test")
    with pytest.raises(Suspended):
        engine.preview_events("order", "x", ["pay"])
