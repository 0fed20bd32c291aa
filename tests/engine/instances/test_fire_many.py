"""fire_many: many events in one round trip, an outcome for each."""

import pytest

from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    EngineUnavailable,
    Fire,
    Refused,
    UnknownInstance,
    UnknownMachine,
)
from tests.engine.builders import NOW, counter, door, publish, started

from .racing import in_threads


def test_outcomes_come_in_the_order_of_the_calls(engine):
    publish(engine, door(), "a", "b")
    results = engine.fire_many([("door", "a", "open"), ("door", "b", "close"), ("door", "a", "close")])
    assert [type(result).__name__ for result in results] == ["Instance", "Refused", "Instance"]
    assert (results[0].state, results[2].state, results[2].revision) == ("Open", "Shut", 3)


def test_no_calls_need_no_server(engine):
    assert engine.fire_many([]) == []


def test_a_call_is_a_tuple_a_mapping_or_a_record(engine):
    started(engine, counter())
    calls = [
        ("counter", "x", "add", {"a": 1}),
        {"machine": "counter", "id": "x", "event": "add", "actor": "alice", "now": NOW + 5},
        Fire("counter", "x", "add", expect=3, reason="why"),
    ]
    assert [result.revision for result in engine.fire_many(iter(calls))] == [2, 3, 4]
    newest, before, *_ = engine.history("counter", "x")
    assert (newest.reason, before.actor, before.at) == ("why", "alice", NOW + 5)


def test_one_that_fails_stops_none_of_the_others(engine):
    publish(engine, door(events={"open": {"payload": {}}}), "x")
    calls = [
        ("door", "y", "open"),
        ("gate", "x", "open"),
        ("door", "x", "open", {"speed": 3}),
        ("door", "x", "open", None, 7),
        ("door", "", "open"),
        ("door", "x", "done.invoke.x"),
        ("door", "x", "close"),
        ("door",),
        {"machine": "door", "id": "x", "evnt": "open"},
        None,
        ("door", "x", "open"),
    ]
    results = engine.fire_many(calls)
    expected = [UnknownInstance, UnknownMachine, BadPayload, Conflict, BadInput, BadInput, Refused] + [BadInput] * 3
    assert [type(result) for result in results[:-1]] == expected
    assert results[-1].state == "Open"
    assert results[3].expected == 7
    assert "a call for fire_many() has the fields machine, id, event" in str(results[7])


def test_a_key_makes_each_call_happen_once(engine):
    started(engine, counter())
    first, again = engine.fire_many([Fire("counter", "x", "add", key="k")] * 2)
    assert (first.revision, again.revision, again.outcome.replayed) == (2, 2, True)


def test_callers_side_by_side_lose_no_step(engine):
    started(engine, counter(), data={"n": -1000})
    in_threads([lambda: engine.fire_many([("counter", "x", "add")] * 50)] * 4)
    assert engine.get("counter", "x").data["n"] == -800


def test_it_needs_one_round_trip(engine):
    publish(engine, door(), "x", "y")
    engine.get("door", "x")
    before = engine.client.info("commandstats")
    engine.fire_many([("door", "x", "open"), ("door", "y", "open")] * 10)
    after = engine.client.info("commandstats")
    assert after["cmdstat_fcall"]["calls"] - before["cmdstat_fcall"]["calls"] == 20


def test_without_a_server_it_raises_at_once(own_engine, own_server):
    publish(own_engine, door(), "x")
    own_server.stop()
    with pytest.raises(EngineUnavailable):
        own_engine.fire_many([("door", "x", "open")])


def test_revisions_alone_are_returned_on_demand(engine):
    publish(engine, door(), "a", "b")
    calls = [("door", "a", "open"), ("door", "b", "close"), ("door", "", "open"), ("door", "a", "close")]
    opened, refused, bad, shut = engine.fire_revisions(calls)
    assert (opened, type(refused), type(bad), shut) == (2, Refused, BadInput, 3)


def test_a_large_batch_is_answered_in_order(engine):
    """It is sent in portions, and calls that fail are answered behind the others."""
    publish(engine, door(), *(f"i{number}" for number in range(100)))
    calls = [("door", f"i{number}", "open" if number % 3 else "close") for number in range(100)]
    for turn in range(2):
        results = engine.fire_many(calls)
        for number, result in enumerate(results):
            if number % 3 and not turn:
                assert (result.id, result.state) == (f"i{number}", "Open")
            else:
                assert isinstance(result, Refused)


def test_a_server_that_lost_the_library_gets_it_in_the_middle(engine):
    publish(engine, door(), *(f"i{number}" for number in range(60)))
    engine.get("door", "i0")
    engine.client.function_flush()
    results = engine.fire_many([("door", f"i{number}", "open") for number in range(60)])
    assert [result.revision for result in results] == [2] * 60


def test_an_input_that_breaks_off_sends_nothing(engine):
    publish(engine, door(), "a")

    def calls():
        yield ("door", "a", "open")
        raise KeyError("the caller's own")

    with pytest.raises(KeyError):
        engine.fire_many(calls())
    assert engine.get("door", "a").revision == 1
