"""create: an instance of a published version, after its first macrostep."""

import pytest

from machines.engine import BadInput, BadPayload, InstanceExists, Refused, UnknownMachine
from machines.engine.ids import is_id
from machines.engine.pattern_keys import PatternKeys
from tests.cases import for_each
from tests.engine.builders import NOW, counter, door, errand, fields, machine, publish, started
from tests.engine.dumps import unchanged

from .racing import in_processes, in_threads, kinds


def test_it_starts_in_the_initial_state_at_version_one(engine):
    made = started(engine, counter(), data={"n": 2})
    assert (made.state, made.revision, made.version, made.data) == ("On", 1, 1, {"n": 2})
    assert (made.created, made.entered, made.done, made.jobs) == (NOW, NOW, False, [])
    assert engine.get("counter", "x").data == {"n": 2}
    assert engine.counts("counter") == {"On": 1, "Off": 0}


def test_without_an_id_it_gets_one_of_its_own(engine):
    publish(engine, door())
    ids = [engine.create("door").id for _ in range(20)]
    assert ids == sorted(set(ids))
    assert all(is_id(id) for id in ids)


def test_without_an_id_of_its_own_a_key_sent_twice_makes_one_instance(engine):
    publish(engine, door())
    first = engine.create("door", key="req-42")
    again = engine.create("door", key="req-42")
    assert (again.id, again.outcome.replayed, first.outcome.replayed) == (first.id, True, False)
    assert engine.create("door", key="req-43").id != first.id
    assert engine.counts("door")["Shut"] == 2


def test_ids_are_made_here_without_a_call_for_each(own_engine):
    publish(own_engine, door())
    own_engine.create("door")
    before = own_engine.client.info("commandstats")["cmdstat_fcall"]["calls"]
    for _ in range(20):
        own_engine.create("door")
    assert own_engine.client.info("commandstats")["cmdstat_fcall"]["calls"] - before in (20, 21)


def test_where_every_node_is_held_an_id_is_random(engine, prefix):
    publish(engine, door())
    held = {str(node): 10**12 * 2 for node in range(1024)}
    engine.client.zadd(PatternKeys(prefix).ids("ids").nodes, held)
    ids = {engine.create("door").id for _ in range(3)}
    assert [len(id) for id in ids] == [32] * 3


def test_without_a_clock_it_takes_the_servers(engine):
    publish(engine, door())
    made = engine.create("door", "x")
    seconds, micros = engine.client.time()
    assert abs(made.created - (seconds * 1000 + micros // 1000)) < 5000


def test_an_id_that_is_taken_is_refused_and_stays_what_it_was(engine):
    started(engine, counter(), data={"n": 2})
    with unchanged(engine), pytest.raises(InstanceExists, match="machine 'counter' already has an instance 'x'"):
        engine.create("counter", "x", {"n": 3})


def test_of_callers_with_one_id_one_wins(engine):
    publish(engine, door())
    assert kinds(in_threads([lambda: engine.create("door", "x")] * 8)) == {"Instance": 1, "InstanceExists": 7}
    assert engine.counts("door") == {"Shut": 1, "Open": 0}


@pytest.mark.faults
def test_in_different_processes_too(engine, redis_url):
    publish(engine, door())
    calls = [("create", ["door", f"id {n}"], {}) for n in range(40)]
    assert in_processes(engine, redis_url, calls) == {"done": 40, "InstanceExists": 80}
    assert engine.counts("door")["Shut"] == 40


def test_data_fields_without_a_value_are_absent(engine):
    made = started(engine, machine("m", {"A": {}}, context=fields(a="string", b={"type": "integer", "default": 7})))
    assert made.data == {"b": 7}


def test_data_that_does_not_fit_is_named(engine):
    publish(engine, counter())

    @for_each(
        "data, field, why",
        [
            ({"m": 1}, "m", "machine 'counter' declares no data field 'm'"),
            ({"n": "1"}, "n", "n takes integer, not string"),
            ({"n": 1.5}, "n", "n takes integer, not number"),
            ({"n": True}, "n", "n takes integer, not boolean"),
            ({"n": None}, "n", "n takes integer, not null"),
        ],
    )
    def check(data, field, why):
        with unchanged(engine), pytest.raises(BadPayload, match=why) as caught:
            engine.create("counter", "x", data)
        assert caught.value.field == field

    check()


def test_entry_actions_and_eventless_transitions_run(engine):
    states = {
        "A": {"entry": {"set": {"n": "n + 1"}}, "always": {"guard": "n > 2", "target": "B"}},
        "B": {"entry": {"set": {"n": "n * 10"}}},
    }
    publish(engine, machine("m", states, context={"n": 0}))
    assert (engine.create("m", "a").state, engine.create("m", "b", {"n": 2}).data) == ("A", {"n": 30})
    assert engine.create("m", "c", {"n": 2}).outcome.transitions == ["t1"]
    assert engine.counts("m") == {"A": 1, "B": 2}


def test_an_entry_action_that_fails_makes_no_instance(engine):
    publish(engine, machine("m", {"A": {"entry": {"set": {"n": "1 / n"}}}}, context={"n": 0.5}))
    with unchanged(engine), pytest.raises(Refused, match="division by zero"):
        engine.create("m", "x", {"n": 0})
    assert engine.create("m", "x", {"n": 2}).data == {"n": 0.5}


def test_a_first_state_with_work_enqueues_it(engine):
    states = {"Busy": {"invoke": {"src": "work", "input": {"id": "instance.id"}, "onDone": "Done"}}, "Done": {}}
    made = started(engine, machine("m", states))
    (job,) = engine.jobs("m", "work")
    assert (made.jobs, job.input, job.instance) == ([job.id], {"id": "x"}, "x")


def test_an_older_version_can_be_named(engine):
    publish(engine, machine("m", {"Old": {}}))
    publish(engine, machine("m", {"New": {}}))
    assert engine.create("m", "a", version=1).state == "Old"
    assert (engine.create("m", "b").state, engine.create("m", "c", version=2).version) == ("New", 2)
    assert engine.get("m", "a").version == 1


def test_an_unknown_version_or_machine_is_named(engine):
    publish(engine, door())
    with pytest.raises(UnknownMachine, match="no version 9 of machine 'door' is published"):
        engine.create("door", "x", version=9)
    with pytest.raises(UnknownMachine, match="no machine 'gate' is published"):
        engine.create("gate", "x", version=9)
    with pytest.raises(BadInput, match="version is a whole number"):
        engine.create("door", "x", version=0)


def test_the_history_begins_with_it(engine):
    started(engine, counter(), data={"n": 2}, actor="alice", reason="by hand")
    (step,) = engine.history("counter", "x")
    assert (step.event, step.revision, step.at, step.source, step.configuration) == ("(create)", 1, NOW, None, ["On"])
    assert (step.actor, step.reason, step.changes, step.transitions) == ("alice", "by hand", {"n": 2}, [])


def test_all_data_together_has_a_bound(engine):
    publish(engine, machine("m", {"A": {}}, context={"a": "x" * 40_000, "b": "", "c": ""}))
    engine.create("m", "x", {"b": "y" * 20_000})
    with unchanged(engine), pytest.raises(Refused, match="the data of an instance has at most 65536 bytes"):
        engine.create("m", "y", {"b": "y" * 30_000})


def test_a_state_with_work_that_is_left_at_once_leaves_no_job(engine):
    states = {"Busy": {"invoke": {"src": "work"}, "always": "Done"}, "Done": {}}
    made = started(engine, machine("m", states))
    assert (made.state, made.jobs, engine.queues("m")["work"]["ready"]) == ("Done", [], 0)


def test_errands_share_no_job(engine):
    publish(engine, errand(), "a", "b")
    for id in ("a", "b"):
        engine.fire("errand", id, "start")
    assert sorted(job.instance for job in engine.jobs("errand", "work")) == ["a", "b"]
