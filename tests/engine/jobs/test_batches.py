"""Many jobs ended in one call: every key is as if they had ended one by one, and one that fails keeps to itself."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from machines.engine import Engine, EngineFault, LeaseLost, Refused
from tests.engine.builders import NOW, machine, publish
from tests.engine.dumps import keys_left

from .queueing import places

DONE = {"target": "Done", "actions": {"set": {"n": "event.result"}}}
STATES = {
    "Idle": {"on": {"go": "Busy", "chain": "First", "both": "Fork"}},
    "Busy": {"invoke": {"src": "work", "onDone": DONE, "onError": "Failed"}},
    "First": {"invoke": {"src": "work", "onDone": {"target": "Busy", "actions": {"enqueue": {"src": "mail"}}}}},
    "Fork": {"invoke": [{"id": "one", "src": "work"}, {"id": "two", "src": "work", "onDone": DONE}]},
    "Done": {"on": {"go": "Busy"}},
    "Failed": {},
}
EVENTS = {"a": "go", "b": "go", "c": "chain", "d": "go", "e": "both", "f": "chain", "g": "go"}


@pytest.fixture
def ready(engine):
    """A machine "errand" whose instances wait for jobs that are all leased: (engine, its jobs)."""
    return engine, _prepared(engine)


def _prepared(engine):
    publish(engine, machine("errand", STATES, context={"n": 0}, history=3), *EVENTS)
    for id, event in EVENTS.items():
        engine.fire("errand", id, event, now=NOW)
    jobs = engine.take("errand", "work", "w", count=50, now=NOW)
    bare = [engine.enqueue("errand", "mail", queue="work", unique=f"u{n}" if n else None, now=NOW) for n in range(2)]
    return [*jobs, *engine.take("errand", "work", "w", count=len(bare), now=NOW)]


READ = {
    "hash": lambda client, key: client.hgetall(key),
    "zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    "list": lambda client, key: client.lrange(key, 0, -1),
    "set": lambda client, key: client.smembers(key),
    "string": lambda client, key: client.get(key),
    "stream": lambda client, key: [fields for _, fields in client.xrange(key)],
}


def _contents(engine):
    """Every key with its value, without what differs from run to run: tokens, the machine's secret, moments, bells."""
    found = {}
    for key in keys_left(engine):
        full = engine.keys.prefix + key
        value = READ[engine.client.type(full)](engine.client, full)
        if isinstance(value, dict):
            value = {name: text for name, text in value.items() if name not in ("token", "secret", "touched")}
        if not key.endswith(":bell") and not key.startswith("twin:"):
            found[key] = value
    return found


def test_ending_jobs_together_writes_what_ending_them_one_by_one_does(ready, redis_url, prefix):
    engine, jobs = ready
    twin = Engine.from_url(redis_url, prefix=f"{prefix}twin:")
    twins = _prepared(twin)
    for job in twins:
        with_result = 3 if job.invoke != "one" else None
        twin.complete(job, with_result, now=NOW + 9)
    outcomes = engine.complete_many([(job, 3 if job.invoke != "one" else None) for job in jobs], now=NOW + 9)
    assert not [each for each in outcomes if isinstance(each, Exception)]
    assert _contents(engine) == _contents(twin)
    assert engine.history("errand", "a")[0].event == "done.invoke.Busy"


@pytest.mark.parametrize("number", range(3))
def test_a_child_that_moves_with_others_leaves_their_indexes_right(engine, number):
    engine.publish(machine("errand", {"Busy": {"invoke": {"src": "work", "onDone": "Done"}}, "Done": {}}))
    engine.publish(machine("outer", {"On": {"invoke": {"src": "machine:errand"}}}))
    for id in ("a", "b"):
        engine.create("errand", id, now=NOW)
    engine.create("outer", "o", now=NOW)
    engine.drive(["outer", "errand"], now=NOW)
    jobs = engine.take("errand", "work", "w", count=3, now=NOW)
    jobs.insert(number, jobs.pop())
    engine.complete_many([(job, None) for job in jobs], now=NOW + 9)
    assert engine.counts("errand") == {"Busy": 0, "Done": 3}
    assert {one.state for one in engine.find("errand")} == {"Done"}
    assert set(engine.client.hvals(engine.keys.partition("errand").flow)) == {"3"}


def test_a_job_named_twice_in_one_call_ends_once(ready):
    engine, jobs = ready
    first, second = engine.complete_many([(jobs[0], 1), (jobs[0], 2)], now=NOW)
    assert first.transitions
    assert isinstance(second, LeaseLost)
    assert (engine.get("errand", jobs[0].instance).data["n"], engine.get("errand", jobs[0].instance).revision) == (1, 3)


@pytest.mark.parametrize("unlucky", [0, 1, 2])
def test_a_step_that_fails_in_a_batch_leaves_no_trace_and_stops_no_other(engine, unlucky):
    publish(engine, machine("errand", STATES, context={"n": 0}), *"abc")
    for id in "abc":
        engine.fire("errand", id, "go", now=NOW)
    jobs = engine.take("errand", "work", "w", count=3, now=NOW)
    partition = engine.keys.partition("errand")
    bad = jobs[unlucky]
    history = partition.history(bad.instance)
    kept = engine.client.lrange(history, 0, -1)
    engine.client.delete(history)
    engine.client.set(history, "foreign")
    outcomes = engine.complete_many([(job, 1) for job in jobs], now=NOW + 1)
    assert [isinstance(each, EngineFault) for each in outcomes] == [job is bad for job in jobs]
    assert places(engine) == {bad.id: "leased"}
    assert engine.counts("errand") == {"Idle": 0, "Busy": 1, "First": 0, "Fork": 0, "Done": 2, "Failed": 0}
    assert engine.client.zscore(partition.state("Busy"), bad.instance) == NOW
    assert {flow: n for flow, n in engine.live("errand").flow.items() if n == 2}
    engine.client.delete(history)
    engine.client.rpush(history, *kept)
    (again,) = engine.complete_many([(bad, 1)], now=NOW + 2)
    assert again.transitions
    assert engine.counts("errand")["Done"] == 3
    assert engine.stats("errand")["work"].completed == 3


def test_a_refused_result_among_good_ones_keeps_only_its_own_job(engine):
    publish(engine, machine("errand", STATES, context={"n": 0}), *"abc")
    for id in "abc":
        engine.fire("errand", id, "go", now=NOW)
    jobs = engine.take("errand", "work", "w", count=3, now=NOW)
    outcomes = engine.complete_many(zip(jobs, [1, "no number", 2], strict=True), now=NOW)
    assert [type(each) for each in outcomes if isinstance(each, Exception)] == [Refused]
    assert engine.get("errand", jobs[1].instance).state == "Busy"
    assert sorted(engine.live("errand").flow.values()) == [2, 3]  # two done, three begun


def test_the_data_a_job_carries_reads_as_its_definition_declares(engine):
    context = {
        "whole": 3,
        "part": 2.0,
        "text": 'a"\\\n\x7fü',
        "flag": True,
        "list": [],
        "deep": {"a": [None, 1.5]},
        "no": None,
    }
    states = {"Busy": {"invoke": {"src": "work"}}}
    publish(engine, {**machine("m", states, context=context), "initial": "Busy"}, "x", "y")
    engine.client.hset(engine.keys.partition("m").instance("x"), mapping={"whole": "1e+15", "part": "7"})
    first, second = engine.take("m", "work", "w", count=2)
    assert first.data == {**context, "whole": 10**15, "part": 7.0}
    assert [type(first.data[name]) for name in ("whole", "part")] == [int, float]
    assert json.dumps(second.data) == json.dumps(engine.get("m", "y").data)


def test_a_job_is_a_record_like_any_other_though_its_fields_are_read_late(engine):
    publish(engine, machine("errand", STATES, context={"n": 0}), "a")
    engine.fire("errand", "a", "go", now=NOW)
    (job,) = engine.take("errand", "work", "w", now=NOW)
    assert copy.deepcopy(job) == replace(job) == job
    assert pickle.loads(pickle.dumps(job)).as_dict() == job.as_dict()
    read = {"instance_is": "present", "instance_state": ("Busy",)}  # of a job that was read, not taken
    assert engine.job("errand", job.id).as_dict() == job.as_dict() | read
    with pytest.raises(AttributeError, match="Job has no attribute 'colour'"):
        _ = job.colour
    with pytest.raises(AttributeError, match="Job has no attribute 'colour'"):
        _ = replace(job).colour
    with pytest.raises(FrozenInstanceError):
        job.src = "other"


def test_ends_of_several_takes_in_one_call_tell_of_their_own_worker_and_time(engine):
    publish(engine, machine("errand", STATES, context={"n": 0}), *"abcd")
    for id in "abcd":
        engine.fire("errand", id, "go", now=NOW)
    takes = [engine.take("errand", "work", f"w{n}", count=2, now=NOW + n) for n in (1, 2)]
    jobs = [job for pair in zip(*takes, strict=True) for job in pair]  # of the two takes in turn
    engine.complete_many([(job, 1) for job in [*jobs[1:3], jobs[0], jobs[3]]], now=NOW + 9)
    partition = engine.keys.partition("errand")
    runs = [engine.client.lindex(partition.history(job.instance), -1).rpartition("\t0=")[2] for job in jobs]
    assert [run.partition("\t")[0] for run in runs] == ['[1,0,8,1,"w1"]', '[2,0,7,1,"w2"]'] * 2
