"""Instances, refusals, dead jobs, flow and time in state of each version."""

import pytest

from machines.engine import Engine, Refused
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.builders import NOW, counter, door, errand

ONE, TWO = (door(description=text) for text in ("one", "two"))


def instances(engine, name="door"):
    return {each.version: each.instances for each in engine.version_figures(name, sample=0)}


def walk(engine, name="door"):
    """The same, counted at the instances themselves."""
    found = dict.fromkeys(engine.versions(name), 0)
    for partition in (engine.keys.partition(name, n) for n in range(engine.count_partitions(name))):
        for key in engine.client.scan_iter(match=f"{partition.root.replace('{', '[{]')}:i:*"):
            found[int(engine.client.hget(key, "_def").partition(":")[0])] += 1
    return found


def test_instances_are_counted_by_what_makes_and_removes_them(engine):
    engine.publish(ONE)
    for n in range(5):
        engine.create("door", f"a{n}", now=NOW)
    engine.publish(TWO)
    for n in range(3):
        engine.create("door", f"b{n}", now=NOW)
    assert instances(engine) == walk(engine) == {1: 5, 2: 3}
    engine.delete("door", "a0")
    engine.delete("door", "b0")
    assert instances(engine) == walk(engine) == {1: 4, 2: 2}
    assert engine.live("door").versions == {"1": 4, "2": 2}
    assert engine.survey().lives["door"].versions == {"1": 4, "2": 2}
    one, two = engine.version_figures("door")
    assert (one.created, two.created, one.role, two.role) == (5, 3, "", "current")


def test_refusals_dead_jobs_and_flow_belong_to_the_version_of_the_instance(engine):
    engine.publish(errand())
    engine.create("errand", "a", now=NOW)
    engine.publish(errand() | {"description": "two"}, rollout=5)
    engine.create("errand", "b", version=2, now=NOW)
    for id in ("a", "b", "b"):
        with pytest.raises(Refused):
            engine.fire("errand", id, "abandon", now=NOW)
    engine.fire("errand", "b", "start", now=NOW)
    (job,) = engine.take("errand", "work", "w", now=NOW)
    engine.fail(job, "no", retry=False, now=NOW)
    one, two = engine.version_figures("errand")
    assert (one.refusals, one.dead, one.steps) == (1, 0, 0)
    assert (two.refusals, two.dead, two.steps, two.role) == (2, 1, 2, "rollout")
    assert sum(two.flow.values()) == 2
    assert (two.attempts.tried, two.attempts.refused, two.attempts.dead) == (4, 2, 1)


def test_a_creation_that_fails_is_a_refusal_of_its_version(engine):
    engine.publish(door())
    broken = door(context={"n": 0})
    broken["states"]["Shut"]["entry"] = {"set": {"n": "1 / n"}}
    engine.publish(broken)
    with pytest.raises(Refused):
        engine.create("door", "a")
    assert [each.refusals for each in engine.version_figures("door")] == [0, 1]


def test_time_in_state_is_of_the_residents(engine):
    engine.publish(ONE)
    seconds, _ = engine.client.time()
    for n in range(9):
        engine.create("door", f"a{n}", now=seconds * 1000 - n * 60_000)
    (one,) = engine.version_figures("door")
    shut = one.times["Shut"]
    assert (shut.sampled, shut.exact) == (9, True)
    assert 240_000 <= shut.median < 360_000
    (one,) = engine.version_figures("door", sample=3)
    shut = one.times["Shut"]
    assert (shut.sampled, shut.exact) == (3, False)
    assert 240_000 <= shut.median < 360_000


def test_retention_takes_them_off(engine):
    engine.publish(counter())
    for id in "abc":
        engine.create("counter", id, now=NOW)
        engine.fire("counter", id, "stop", now=NOW)
    engine.publish(counter(description="two"))
    reply = engine.client.fcall(
        "sb_retire", 1, engine.keys.partition("counter").root, "x", "", "a", "2", NOW, "b", "2", NOW, "unpacked"
    )
    assert reply[1] == 2
    assert instances(engine, "counter") == {1: 1, 2: 0}


def test_an_export_carries_counters_and_the_roll_out(engine, redis_url, prefix, tmp_path):
    engine.publish(errand())
    engine.create("errand", "a", now=NOW)
    engine.publish(errand() | {"description": "two"}, rollout=12.5, actor="ann")
    engine.create("errand", "b", version=2, now=NOW)
    engine.create("errand", "c", version=2, now=NOW)
    engine.pin_instance("errand", "c", actor="ann", reason="x")
    with pytest.raises(Refused):
        engine.fire("errand", "b", "abandon", now=NOW)
    engine.publish(errand() | {"description": "three"}, rollout=3)
    engine.withdraw_version("errand", 2)
    Export(engine.client, engine.keys, "errand", tmp_path / "m.gz").run()
    other = Engine.from_url(redis_url, prefix=f"{prefix}x:", partitions=1)
    Import(other.client, other.keys, tmp_path / "m.gz", partitions=4).run()
    assert instances(other, "errand") == walk(other, "errand") == {1: 1, 2: 2, 3: 0}
    assert other.version_figures("errand")[1].refusals == 1
    assert other.version_figures("errand")[1].created == 2
    rollout = other.rollout("errand")
    assert (rollout.version, rollout.base, rollout.percent) == (3, 1, 3.0)
    assert list(other.withdrawn_versions("errand")) == [2]
    assert other.machines() == {"errand": 1}
    assert other.get("errand", "c").pinned
    assert other.unsettled_machines() == []
    Import(other.client, other.keys, tmp_path / "m.gz").run()
    assert other.rollout("errand").percent == 3.0, "a second import leaves it alone"
    keys = list(other.client.scan_iter(match=f"{prefix}x:*"))
    other.client.delete(*keys)
    other.client.close()


def test_more_partitions_carry_them_along(engine):
    engine.publish(ONE)
    for n in range(30):
        engine.create("door", f"a{n}", now=NOW)
    engine.publish(TWO, rollout=40)
    for n in range(30):
        engine.create("door", f"b{n}", now=NOW)
    before = instances(engine)
    assert Repartition(engine.client, engine.keys, "door", 4, settle=0).run().finished
    engine._catalog.refresh()
    assert instances(engine) == walk(engine) == before
    assert engine.rollout("door").percent == 40
    assert engine.unsettled_machines() == []
    made = {engine.create("door", f"c{n}", now=NOW).version for n in range(40)}
    assert made == {1, 2}
