"""delete: the instance, its history, its place in the index and the jobs it waits for."""

import pytest

from machines.engine import Conflict, LeaseLost, LookupFailed, SignalboxError, UnknownInstance, UnknownMachine
from tests.engine.builders import counter, door, errand, publish, started
from tests.engine.dumps import keys_left, unchanged
from tests.engine.families import only, parent

from .racing import in_threads, kinds


def test_it_answers_the_instance_as_it_was(engine):
    started(engine, counter(), data={"n": 2})
    gone = engine.delete("counter", "x", actor="alice", reason="a mistake")
    assert (gone.state, gone.data, gone.revision) == ("On", {"n": 2}, 1)
    with pytest.raises(UnknownInstance):
        engine.get("counter", "x")
    assert engine.counts("counter") == {"On": 0, "Off": 0}
    assert engine.find("counter").instances == []


def test_nothing_of_it_is_left_but_a_line_in_the_log(engine):
    publish(engine, door())
    before = keys_left(engine)
    engine.create("door", "x")
    engine.fire("door", "x", "open")
    engine.delete("door", "x", actor="alice", reason="a mistake")
    assert keys_left(engine) - before == {"{door:0}:flow", "{door:0}:log"}
    ((_, entry),) = engine.client.xrange(engine.keys.partition("door").log)
    assert (entry["kind"], entry["instance"], entry["actor"], entry["reason"]) == ("deleted", "x", "alice", "a mistake")


def test_another_instance_is_left_alone(engine):
    publish(engine, door(), "x", "xy")
    engine.delete("door", "x")
    assert [instance.id for instance in engine.find("door")] == ["xy"]
    assert len(engine.history("door", "xy")) == 1


def test_twice_is_an_unknown_instance(engine):
    started(engine, door())
    engine.delete("door", "x")
    with unchanged(engine), pytest.raises(UnknownInstance):
        engine.delete("door", "x")
    with pytest.raises(UnknownMachine):
        engine.delete("gate", "x")


def test_another_version_is_a_conflict(engine):
    started(engine, door())
    with unchanged(engine), pytest.raises(Conflict):
        engine.delete("door", "x", expect=2)
    engine.delete("door", "x", expect=1)


def test_of_several_callers_one_deletes_it(engine):
    started(engine, door())
    assert kinds(in_threads([lambda: engine.delete("door", "x")] * 6)) == {"Instance": 1, "UnknownInstance": 5}


def test_a_job_it_waits_for_goes_with_it_wherever_it_is(engine):
    publish(engine, errand(), "ready", "held")
    engine.fire("errand", "held", "start")
    (held,) = engine.take("errand", "work", "w")
    engine.fire("errand", "ready", "start")
    for id in ("ready", "held"):
        engine.delete("errand", id)
    assert engine.queues("errand")["work"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    with pytest.raises(LeaseLost, match="withdrawn"):
        engine.complete(held)
    with pytest.raises(LookupFailed):
        engine.job("errand", held.id)


def test_the_id_is_free_again_and_starts_from_the_beginning(engine):
    started(engine, door())
    engine.fire("door", "x", "open")
    engine.delete("door", "x")
    again = engine.create("door", "x")
    assert (again.revision, again.state, len(engine.history("door", "x"))) == (1, "Shut", 1)


def test_a_flat_child_stays_where_its_parent_cannot_be_told(engine):
    publish(engine, door())
    publish(engine, parent(src="machine:door"), "p")
    engine.fire("parent", "p", "start")
    outbox = engine.keys.partition("door").outbox
    engine.client.set(outbox, "no stream")
    with unchanged(engine), pytest.raises(SignalboxError, match="WRONGTYPE"):
        engine.delete("door", only(engine, "door").id, actor="alice", reason="a mistake")
    engine.client.delete(outbox)
    engine.delete("door", only(engine, "door").id, actor="alice", reason="a mistake")
    assert engine.get("parent", "p").state == "Failed"
