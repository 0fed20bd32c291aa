"""Letting go of finished instances: which are due, and that only those go that are as they were read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from machines.engine import UnknownInstance
from tests.engine.builders import NOW, counter, door, machine, publish
from tests.engine.dumps import keys_left


def finish(engine, *ids: str, at: int = NOW) -> None:
    for id in ids:
        engine.create("counter", id, now=at)
        engine.fire("counter", id, "add", now=at)
        engine.fire("counter", id, "stop", now=at)


def read(engine, name: str = "counter", state: str = "Off", before: int = NOW, skip: int = 0):
    retirement = engine.retirement()
    (partition,) = retirement.partitions(name)
    return retirement.read(name, partition, state, before, skip=skip, limit=100)


def ids(batch) -> list[str]:
    return [found.id for found in batch.instances]


def test_a_batch_holds_the_oldest_finished_instances_whole(engine):
    publish(engine, counter(), "running")
    finish(engine, "late", at=NOW + 10)
    finish(engine, "b", "a", at=NOW)
    assert ids(read(engine)) == ["a", "b"]
    assert ids(read(engine, skip=1)) == ["b"]
    found = read(engine).instances[0]
    assert (found.revision, found.state, found.created, found.finished, found.version) == (3, "Off", NOW, NOW, 1)
    instance, steps = engine.retirement().decode(found)
    assert instance == replace(engine.get("counter", "a"), outcome=None)
    assert steps == engine.history("counter", "a")


def test_nothing_of_an_instance_is_left_and_the_log_says_how_many_went(engine):
    publish(engine, counter(index=["n", "instance.actor", "instance.transition"]))
    before = keys_left(engine)
    finish(engine, "a", "b")
    retired = engine.retirement().retire(read(engine), actor="retention")
    assert (retired.gone, retired.stayed) == (2, [])
    assert keys_left(engine) - before == {"{counter:0}:flow", "{counter:0}:log"}
    assert (engine.live("counter").total, engine.counts("counter")) == (0, {"On": 0, "Off": 0})
    ((_, entry),) = engine.client.xrange(engine.keys.partition("counter").log)
    assert (entry["kind"], entry["data"], entry["actor"]) == ("retired", '{"instances":2}', "retention")


def test_one_that_changed_since_it_was_read_stays(engine):
    publish(engine, counter())
    finish(engine, "a", "forced", "anew", "gone")
    batch = read(engine)
    engine.force("counter", "forced", "On", actor="ann", reason="once more")
    engine.delete("counter", "anew")
    finish(engine, "anew", at=NOW + 5)
    engine.delete("counter", "gone")
    retired = engine.retirement().retire(batch)
    assert retired.gone == 1
    assert set(retired.stayed) == {"forced", "anew", "gone"}
    assert engine.get("counter", "forced").state == "On"
    assert engine.get("counter", "anew").created == NOW + 5


def test_one_that_is_reopened_and_ends_again_counts_from_then(engine):
    publish(engine, counter())
    finish(engine, "a")
    engine.force("counter", "a", "On", actor="ann", reason="once more", now=NOW + 5)
    engine.fire("counter", "a", "stop", now=NOW + 10)
    assert ids(read(engine)) == []
    assert ids(read(engine, before=NOW + 10)) == ["a"]


def test_what_has_not_ended_stays_whatever_is_asked(engine):
    publish(engine, door(), "x")
    retirement = engine.retirement()
    (partition,) = retirement.partitions("door")
    assert retirement.final_states("door") == []
    batch = retirement.read("door", partition, "Shut", NOW + 10, skip=0, limit=10)
    assert ids(batch) == ["x"]
    assert retirement.retire(batch).stayed == ["x"]
    assert engine.get("door", "x").state == "Shut"


def test_a_chart_goes_when_all_of_it_has_ended(engine):
    region = {"initial": "work", "states": {"work": {"on": {}}, "end": {"type": "final"}}}
    states = {
        name: region
        | {"states": {f"{name}1": {"on": {name: f"{name}2"}}, f"{name}2": {"type": "final"}}, "initial": f"{name}1"}
        for name in ("a", "b")
    }
    publish(engine, {"id": "both", "type": "parallel", "states": states}, "half", "whole")
    engine.fire("both", "half", "a", now=NOW)
    for event in ("a", "b"):
        engine.fire("both", "whole", event, now=NOW)
    assert engine.get("both", "whole").done
    assert not engine.get("both", "half").done
    assert engine.retirement().final_states("both") == ["a2", "b2"]
    retired = engine.retirement().retire(read(engine, "both", "a2"))
    assert (retired.gone, retired.stayed) == (1, ["half"])
    with pytest.raises(UnknownInstance):
        engine.get("both", "whole")


def test_a_final_state_inside_another_state_is_no_end(engine):
    inner = {"initial": "i1", "states": {"i1": {"on": {"go": "i2"}}, "i2": {"type": "final"}}}
    publish(engine, machine("nested", {"outer": inner, "end": {"type": "final"}}))
    assert engine.retirement().final_states("nested") == ["end"]


def test_the_cutoff_leaves_the_newest(engine):
    publish(engine, counter())
    for number in range(6):
        finish(engine, f"i{number}", at=NOW + number)
    retirement = engine.retirement()
    assert retirement.find_cutoff("counter", 6, NOW + 100) is None
    cutoff = retirement.find_cutoff("counter", 2, NOW + 100)
    assert ids(read(engine, before=cutoff)) == ["i0", "i1", "i2", "i3"]
    assert retirement.find_cutoff("counter", 0, NOW + 100) == NOW + 5
    assert (retirement.count("counter"), retirement.find_oldest("counter")) == (6, NOW)


def test_a_cutoff_within_one_millisecond_keeps_no_more_than_the_bound(engine):
    publish(engine, counter())
    finish(engine, "a", "b", "c")
    assert engine.retirement().find_cutoff("counter", 2, NOW + 100) == NOW


def test_a_batch_takes_as_many_calls_as_its_time_needs(engine):
    publish(engine, counter(index=["n"]))
    finish(engine, *(f"i{number:03}" for number in range(100)))
    retired = engine.retirement().retire(read(engine))
    assert (retired.gone, retired.stayed) == (100, [])
    assert retired.micros > 0


def test_old_entries_of_the_log_go_unless_a_group_needs_them(engine):
    publish(engine, counter(), "x")
    log = engine.keys.partition("counter").log
    for number in range(1, 1001):
        engine.client.xadd(log, {"kind": "log", "name": "n"}, id=f"{number}-0")
    retirement = engine.retirement()
    (partition,) = retirement.partitions("counter")
    engine.client.xgroup_create(log, "g", id="300-0")
    assert 200 <= retirement.trim_log(partition, 900) <= 300
    engine.client.xgroup_destroy(log, "g")
    retirement.trim_log(partition, 900)
    assert 100 <= engine.client.xlen(log) < 300
    assert retirement.trim_log(partition, 0) == 0
