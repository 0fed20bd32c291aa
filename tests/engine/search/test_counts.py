"""counts and live: absolute values of one moment."""

import pytest

from machines.engine import UnknownMachine
from tests.engine.builders import NOW, counter, door, errand, machine, publish, started


def test_every_state_of_the_current_version_is_there_with_zeros(engine):
    publish(engine, door())
    assert engine.counts("door") == {"Shut": 0, "Open": 0}


def test_each_step_moves_one_from_state_to_state(engine):
    publish(engine, door(), "a", "b", "c")
    engine.fire("door", "a", "open")
    assert engine.counts("door") == {"Shut": 2, "Open": 1}
    engine.delete("door", "b")
    assert engine.counts("door") == {"Shut": 1, "Open": 1}


def test_states_of_older_versions_count_as_long_as_they_hold_instances(engine):
    started(engine, machine("m", {"Old": {"on": {"end": "Gone"}}, "Gone": {}}))
    publish(engine, machine("m", {"New": {}}))
    assert engine.counts("m") == {"New": 0, "Old": 1}
    engine.fire("m", "x", "end")
    assert engine.counts("m") == {"New": 0, "Gone": 1}
    engine.delete("m", "x")
    assert engine.counts("m") == {"New": 0}


def test_oldest_is_when_the_longest_staying_one_came(engine):
    publish(engine, door())
    for number, id in enumerate("abc"):
        engine.create("door", id, now=NOW + number)
    engine.fire("door", "a", "open", now=NOW + 50)
    assert engine.live("door").oldest == {"Shut": NOW + 1, "Open": NOW + 50}


def test_flow_counts_each_edge_of_each_version(engine):
    publish(engine, door(), "x")
    for event in ("open", "close", "open"):
        engine.fire("door", "x", event)
    publish(engine, machine("door", {"Shut": {"on": {"open": "Open"}}, "Open": {}}), "y")
    engine.fire("door", "y", "open")
    assert engine.live("door").flow == {"1:t1": 2, "1:t2": 1, "2:t1": 1}


def test_queues_tell_how_deep_each_place_is(engine):
    publish(engine, errand(), *"abcd")
    assert engine.queues("errand") == {"work": {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}}
    for id in "abcd":
        engine.fire("errand", id, "start")
    first, second, _ = engine.take("errand", "work", "w", count=3)
    engine.fail(first, "no")
    engine.fail(second, "no", retry=False)
    assert engine.queues("errand") == {"work": {"ready": 1, "leased": 1, "delayed": 1, "dead": 0, "handled": 1}}


def test_all_of_it_is_plain_data(engine):
    publish(engine, counter(), "x")
    live = engine.live("counter").as_dict()
    seconds, micros = engine.client.time()
    assert abs(live.pop("now") - (seconds * 1000 + micros // 1000)) < 5000
    assert live == {
        "machine": "counter",
        "version": 1,
        "counts": {"On": 1, "Off": 0},
        "oldest": {"On": NOW},
        "flow": {},
        "total": 1,
        "timers": 0,
        "overdue": 0,
        "mail": 0,
        "late": 0,
        "refused": {},
        "breaches": {},
        "unchecked": {},
        "breached_since": {},
        "versions": {"1": 1},
        "compile_failures": 0,
        "queues": {},
        "missing": (),
    }


def test_an_unknown_machine_has_none(engine):
    with pytest.raises(UnknownMachine):
        engine.counts("gate")
    with pytest.raises(UnknownMachine):
        engine.live("gate")


def clock(engine):
    """The server's own clock in ms."""
    seconds, micros = engine.client.time()
    return seconds * 1000 + micros / 1000


def test_a_machine_that_runs_rings_all_the_time_but_never_twice_in_fifty_ms(own_engine):
    own_engine.client.config_set("notify-keyspace-events", "K$")
    publish(own_engine, counter())
    own_engine.create("counter", "x", {"n": -100_000})
    listener = own_engine.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(f"__keyspace@0__:{own_engine.keys.partition('counter').pulse}")
    listener.get_message(timeout=1)
    began = clock(own_engine)
    while clock(own_engine) < began + 400:
        own_engine.fire_many([("counter", "x", "add")] * 10)
    lasted, heard = clock(own_engine) - began, 0
    while listener.get_message(timeout=0.2):
        heard += 1
    listener.close()
    assert 2 <= heard <= lasted / 50 + 1


def test_a_step_after_the_pulse_is_over_rings_again(own_engine):
    publish(own_engine, counter(), "x")
    pulse = own_engine.keys.partition("counter").pulse
    assert 0 < own_engine.client.pttl(pulse) <= 50
    while own_engine.client.exists(pulse):
        pass
    own_engine.fire("counter", "x", "add")
    assert own_engine.client.exists(pulse)
