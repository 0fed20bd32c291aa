"""Unique keys of the work that instances wait for: one of them has it, and nobody waits for another's job."""

import pytest

from machines.engine import Engine, EngineFault, Refused
from tests.engine.builders import NOW, machine, publish
from tests.engine.dumps import unchanged

from .queueing import places

BUSY = {
    "invoke": {"src": "work", "unique": "serial", "onDone": "Done", "onError": "Idle"},
    "on": {"again": {"target": "Busy", "reenter": True}, "stop": "Idle"},
}
STATES = {"Idle": {"on": {"start": "Busy"}}, "Busy": BUSY, "Done": {"on": {"more": "Busy"}}}
CONTEXT = {"serial": "S1"}


@pytest.fixture
def pair(engine):
    """``x`` has the work, ``y`` wants it."""
    publish(engine, machine("m", STATES, context=CONTEXT), "x", "y")
    engine.fire("m", "x", "start", now=NOW)
    return engine


def take(engine):
    return engine.take("m", "work", "w", now=NOW)


def test_while_anothers_job_is_open_the_state_cannot_be_entered(pair):
    with unchanged(pair), pytest.raises(Refused, match='the unique key "S1" of queue work is held by the open job 0-1'):
        pair.fire("m", "y", "start", now=NOW)
    assert not pair.explain("m", "y", "start").taken
    (job,) = take(pair)
    with pytest.raises(Refused):
        pair.fire("m", "y", "start", now=NOW)
    pair.complete(job, now=NOW)
    assert pair.fire("m", "y", "start", now=NOW).jobs == ["0-2"]


def test_an_instance_may_begin_its_own_work_anew(pair):
    assert pair.fire("m", "x", "again", now=NOW).jobs == ["0-2"]
    assert places(pair, name="m") == {"0-2": "ready"}
    with pytest.raises(Refused):
        pair.fire("m", "y", "start", now=NOW)
    (job,) = take(pair)
    assert pair.complete(job, now=NOW).state == "Done"
    assert pair.fire("m", "x", "more", now=NOW).jobs == ["0-3"]


def test_leaving_the_state_frees_the_key(pair):
    pair.fire("m", "x", "stop", now=NOW)
    assert pair.fire("m", "y", "start", now=NOW).jobs == ["0-2"]


def test_what_died_does_not_hold_the_key_and_cannot_come_back_while_another_does(pair):
    (job,) = take(pair)
    pair.fail(job, "no", retry=False, now=NOW)
    assert pair.fire("m", "y", "start", now=NOW).jobs == ["0-2"]
    assert pair.redrive("m", "work", job, actor="a", reason="r", force=True) == 0
    assert pair.redrive("m", "work", actor="a", reason="r") == 0
    assert places(pair, name="m") == {"0-1": "handled", "0-2": "ready"}


def test_the_end_of_a_job_may_lead_back_to_its_state(engine):
    busy = {"invoke": {"src": "work", "unique": "serial", "onDone": {"target": "Busy", "reenter": True}}}
    publish(engine, machine("m", {"Busy": busy}, context=CONTEXT), "x")
    for number in (1, 2, 3):
        (job,) = take(engine)
        assert (job.id, engine.complete(job, now=NOW).jobs) == (f"0-{number}", [f"0-{number + 1}"])
        assert places(engine, name="m") == {f"0-{number + 1}": "ready"}
        (held,) = engine.client.scan_iter(match=f"{engine.keys.prefix}*:u:work:S1")
        assert engine.client.get(held) == f"0-{number + 1}"


def test_two_invokes_of_a_state_cannot_have_one_key(engine):
    twice = [{"src": "work", "id": n, "queue": "work", "unique": "serial"} for n in ("one", "two")]
    publish(engine, machine("m", {"Idle": {"on": {"start": "Busy"}}, "Busy": {"invoke": twice}}, context=CONTEXT), "x")
    with unchanged(engine), pytest.raises(Exception, match="two jobs of one instance have the unique key"):
        engine.fire("m", "x", "start", now=NOW)


def test_a_chart_is_refused_or_told_like_a_flat_machine(engine):
    inside = {"initial": "B", "states": {"B": BUSY | {"on": {}}}}
    states = {"Idle": {"on": {"start": "Box"}}, "Box": inside, "Done": {}, "Failed": {}}
    publish(engine, machine("c", states, context=CONTEXT), "x", "y")
    engine.fire("c", "x", "start", now=NOW)
    with unchanged(engine), pytest.raises(Refused, match="is held by the open job"):
        engine.fire("c", "y", "start", now=NOW)
    raising = machine("r", states | {"Box": inside | {"on": {"error.execution": "Failed"}}}, context=CONTEXT)
    publish(engine, raising, "x", "y")
    engine.fire("r", "x", "start", now=NOW)
    assert engine.fire("r", "y", "start", now=NOW).state == "Failed"


def test_a_chart_keeps_its_key_where_another_region_moves(engine):
    work = {"initial": "B", "states": {"B": BUSY | {"on": {}}, "Done": {}, "Idle": {}}}
    other = {"initial": "L", "states": {"L": {"on": {"flip": "R"}}, "R": {"on": {"flip": "L"}}}}
    publish(engine, {"id": "p", "type": "parallel", "context": CONTEXT, "states": {"W": work, "O": other}}, "x")
    for _ in range(3):
        assert engine.fire("p", "x", "flip", now=NOW).jobs == ["0-1"]
    assert places(engine, name="p") == {"0-1": "ready"}


def test_none_is_no_key_and_a_number_is_one(engine):
    states = {"Busy": {"invoke": {"src": "work", "unique": "n"}}}
    publish(engine, machine("m", states, context={"type": "object", "properties": {"n": {}}}))
    for id in ("a", "b"):
        engine.create("m", id)
    engine.create("m", "c", {"n": 7})
    with pytest.raises(Refused, match='key 7|key "7"'):
        engine.create("m", "d", {"n": 7})
    with pytest.raises(Refused, match="text was expected"):
        engine.create("m", "e", {"n": [1]})
    with pytest.raises(Refused, match="a unique key has 1 to 200 bytes"):
        engine.create("m", "f", {"n": "x" * 201})
    assert len(engine.jobs("m", "work")) == 3


def test_each_partition_has_keys_of_its_own(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=2)
    publish(engine, machine("m", STATES, context=CONTEXT), "a", "b", "c", "d")
    started = []
    for id in "abcd":
        try:
            started += engine.fire("m", id, "start").jobs
        except Refused:
            continue
    assert len(started) == 2
    engine.client.close()


def debounced(**more):
    """Each ``note`` enqueues a job of the instance's key, of which the last one wins."""
    note = {"enqueue": {"src": "index", "queue": "work", "unique": "serial", "debounce": "5s", "input": {"of": "n"}}}
    states = {"On": {"on": {"note": {"actions": [{"set": {"n": "n + 1"}}, note, *more.get("then", ())]}}}}
    return machine("m", states, context={"n": 0, "serial": "S1"})


def test_of_jobs_that_actions_enqueue_with_one_key_the_last_wins(engine):
    publish(engine, debounced(), "a", "b")
    for at, id in enumerate("aab"):
        engine.fire("m", id, "note", now=NOW + at)
    assert not engine.take("m", "work", "w", now=NOW + 5001)
    (job,) = engine.take("m", "work", "w", now=NOW + 5002)
    assert (job.id, job.instance, job.input, job.data["n"]) == ("0-1", "b", {"of": 1}, 1)
    engine.fire("m", "a", "note", now=NOW + 5003)
    assert engine.complete(job, now=NOW + 5004) is None
    assert places(engine, name="m") == {"0-2": "delayed"}, "beside the running one"


def test_a_step_that_fails_replaces_nothing(engine):
    then = {"enqueue": {"src": "mail"}}
    publish(engine, debounced(then=[then]), "a", "b")
    engine.fire("m", "a", "note", now=NOW)
    engine.client.delete(engine.keys.partition("m").ready("mail"))
    engine.client.set(engine.keys.partition("m").ready("mail"), "foreign")
    for at in (NOW + 1, NOW + 6000):
        with unchanged(engine), pytest.raises(EngineFault):
            engine.fire("m", "b", "note", now=at)
        engine.sweep("m", now=NOW + 5000)
    assert [job.id for job in engine.jobs("m", "work", place="ready")] == ["0-1"]
