"""Entries of the history are packed in Redis, and read as they were written."""

import json

import pytest

from machines.engine import Refused
from tests.engine.builders import NOW, counter, door, fields, machine, publish, started

ODD = 'tab\there, line\nbreak, "quotes", \\, é, 🚦, 3=4'


def entries(engine, name, id="x"):
    return engine.client.lrange(engine.keys.partition(name).history(id), 0, -1)


def steps(engine, name, id="x"):
    """As sb_history answers them, oldest first."""
    reply = engine.client.fcall("sb_history", 1, engine.keys.partition(name).root, id, 0, -1)
    assert reply[0] == "OK"
    return [json.loads(text) for text in reply[3:]]


def test_an_entry_has_no_name_that_the_definition_knows(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", {"why": "it"}, actor="ann", reason="because", now=NOW + 3)
    engine.fire("counter", "x", "stop", now=NOW + 3_600_000)
    assert entries(engine, "counter") == [
        "1:\t1\t0\t1=0",
        '1:t1\t2\t3\t@"ann"\t?"because"\t{"why":"it"}\t1=1',
        "1:t2\t3\t3600000",
    ]
    assert steps(engine, "counter") == [
        [1, NOW, "(create)", "On", "", 0, 0, 0, {"n": 0}],
        [2, NOW + 3, "add", "On", "t1", "ann", "because", {"why": "it"}, {"n": 1}],
        [3, NOW + 3_600_000, "stop", "Off", "t2", 0, 0, 0, 0],
    ]


@pytest.mark.parametrize("chart", [False, True], ids=["flat", "chart"])
def test_the_end_of_a_job_tells_how_it_went(engine, chart):
    working = {"invoke": {"id": "work", "src": "do", "queue": "q", "onDone": "Done"}}
    states = {"Work": working | ({"initial": "A", "states": {"A": {}}} if chart else {}), "Done": {}}
    for name, result in (("m", {"n": 1}), ("n", None)):
        started(engine, machine(name, states))
        (job,) = engine.take(name, "q", ODD, now=NOW + 5)
        engine.fail(job, "no", delay=10, now=NOW + 20)
        (job,) = engine.take(name, "q", ODD, now=NOW + 40)
        engine.complete(job, result, now=NOW + 100)
        newest = steps(engine, name)[-1]
        assert newest[3:] == ["Done", "t1", f"job {job.id}", 0, {"result": result} if result else 0, 0, [],
                              [5, 35, 60, 2, ODD]]  # fmt: skip
        assert engine.history(name, "x")[0].changes == {}


@pytest.mark.parametrize("chart", [False, True], ids=["flat", "chart"])
def test_any_text_comes_back(engine, chart):
    go = {"actions": [{"set": {"text": "event.text", "many": "event.many", "n": "event.n"}}, {"unset": "gone"}]}
    states = {"A": {"on": {"go": go}}}
    if chart:
        states["A"] |= {"initial": "B", "states": {"B": {}}}
    context = fields(gone={"default": 1}, text="string", many={}, n="number")
    started(engine, machine("m", states, context=context))
    payload = {"text": ODD, "many": {"a b": [1, {"=": ODD}, [], {}], "\t": None}, "n": 1.5e300}
    for number in (1, 2):
        engine.fire("m", "x", "go", payload, actor=ODD, reason=ODD, now=NOW + number)
    assert len(entries(engine, "m")[1].split("\t")) == 10 + chart  # no text brings a tab of its own
    newest, before, _ = engine.history("m", "x")
    assert before.payload == payload
    assert before.changes == payload | {"gone": None}
    assert (before.actor, before.reason, before.at) == (ODD, ODD, NOW + 1)
    assert (newest.payload, newest.changes) == (payload, {})


def test_an_event_by_a_wildcard_is_named(engine):
    started(engine, machine("m", {"A": {"on": {"a.*": "B", "*": "C"}}, "B": {"on": {"*": "A"}}, "C": {}}))
    for event in ("a.b", "back", "else"):
        engine.fire("m", "x", event, now=NOW)
    assert [(one[2], one[3], one[4]) for one in steps(engine, "m")] == [
        ("(create)", "A", ""),
        ("a.b", "B", "t1"),
        ("back", "A", "t3"),
        ("else", "C", "t2"),
    ]


def test_states_and_transitions_of_a_chart(engine):
    regions = {
        "L": {"initial": "a", "states": {"a": {"on": {"go": "b"}}, "b": {}}},
        "R": {"initial": "c", "states": {"c": {"on": {"go": "d"}}, "d": {"always": "e"}, "e": {}}},
    }
    states = {"Start": {"on": {"in": "Both"}}, "Both": {"type": "parallel", "states": regions, "on": {"out": "Start"}}}
    started(engine, machine("m", states))
    for event in ("in", "go", "out"):
        engine.fire("m", "x", event, now=NOW)
    found = steps(engine, "m")
    told = [step.configuration for step in engine.history("m", "x")][::-1]
    assert told == [["Start"], ["a", "c"], ["b", "e"], ["Start"]]
    assert [one[2] for one in found] == ["(create)", "in", "go", "out"]
    assert len(found[2][4].split()) == 3
    assert engine.history("m", "x")[1].transitions == found[2][4].split()


def test_repairs_are_named(engine):
    started(engine, door())
    engine.force("door", "x", "Open", actor="ann", reason="stuck", now=NOW)
    engine.suspend("door", "x", actor="ann", reason="wait", now=NOW)
    engine.resume("door", "x", actor="ann", reason="go on", now=NOW)
    engine.reset("door", "x", actor="ann", reason="again", now=NOW)
    assert [(step.event, step.configuration) for step in engine.history("door", "x")] == [
        ("(reset)", ["Shut"]),
        ("(resume)", ["Open"]),
        ("(suspend)", ["Open"]),
        ("(force)", ["Open"]),
        ("(create)", ["Shut"]),
    ]


def test_each_entry_is_read_by_the_version_that_wrote_it(engine):
    first = machine("m", {"A": {"on": {"go": "B"}}, "B": {}}, context={"old": 1})
    started(engine, first)
    engine.fire("m", "x", "go", now=NOW)
    second = {"Z": {}, "A": {"on": {"no": "Z"}}, "B": {"on": {"went": "C"}}, "C": {}}
    publish(engine, machine("m", second, context={"new": 1, "old": 1}) | {"initial": "A"})
    engine.migrate(engine.plan("m", 2), actor="ann")
    engine.fire("m", "x", "went", now=NOW)
    assert [(one[2], one[3]) for one in steps(engine, "m")] == [
        ("(create)", "A"),
        ("go", "B"),
        ("(migrate)", "B"),
        ("went", "C"),
    ]
    assert steps(engine, "m")[0][8] == {"old": 1}


def test_entries_of_earlier_releases_are_read_beside_others(engine):
    started(engine, counter())
    history = engine.keys.partition("counter").history("x")
    old = [1, NOW, "(create)", "On", "", 0, 0, 0, {"n": 0}]
    engine.client.lset(history, 0, json.dumps(old, separators=(",", ":")))
    engine.fire("counter", "x", "add", now=NOW + 1)
    assert steps(engine, "counter") == [old, [2, NOW + 1, "add", "On", "t1", 0, 0, 0, {"n": 1}]]


def test_what_a_lost_definition_told_is_missing_and_the_rest_is_read(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", {"why": "it"}, actor="ann", now=NOW + 3)
    engine.client.delete(engine.keys.partition("counter").definition(1))
    assert steps(engine, "counter")[1] == [2, NOW + 3, "", "", "t1", "ann", 0, {"why": "it"}, {"?1": 1}]


@pytest.mark.parametrize("text", ["", "no entry", "1:t1", "1:t1\t2", "1:t1\t2\tx", "1:t1\t2\t3\tnothing", "{}", "[]"])
def test_what_is_no_entry_is_answered_as_it_is(engine, text):
    started(engine, counter())
    engine.client.lset(engine.keys.partition("counter").history("x"), 0, text)
    reply = engine.client.fcall("sb_history", 1, engine.keys.partition("counter").root, "x", 0, -1)
    assert reply[3:] == [text]


def test_a_step_before_the_creation_has_its_time(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add", now=NOW - 5)
    engine.fire("counter", "x", "add", now=10**14 - 1)
    assert [one[1] for one in steps(engine, "counter")] == [NOW, NOW - 5, 10**14 - 1]


def retire(engine, *more):
    root = engine.keys.partition("counter").root
    return engine.client.fcall("sb_retire", 1, root, "", "", "x", "2", NOW, *more)


def test_a_caller_that_cannot_read_packed_entries_lets_go_of_none(engine):
    """Such a caller has archived the list as it is."""
    started(engine, counter())
    engine.fire("counter", "x", "stop", now=NOW)
    assert retire(engine)[1] == 0
    assert retire(engine)[4:] == ["x"]
    assert retire(engine, "unpacked")[1] == 1


def test_a_caller_of_before_lets_go_of_entries_of_before(engine):
    started(engine, counter())
    engine.fire("counter", "x", "stop", now=NOW)
    history = engine.keys.partition("counter").history("x")
    for place, step in enumerate(steps(engine, "counter")):
        engine.client.lset(history, place, json.dumps(step))
    assert retire(engine)[1] == 1


def test_a_refused_event_leaves_no_entry(engine):
    started(engine, counter())
    with pytest.raises(Refused):
        engine.fire("counter", "x", "nothing")
    assert len(entries(engine, "counter")) == 1
