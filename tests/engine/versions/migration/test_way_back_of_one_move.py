"""The way back of a plan takes back the instances that its move brought, and leaves all others."""

from __future__ import annotations

import pytest

from machines.engine import Engine
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.builders import machine
from tests.engine.transfer.worlds import export, read

from ..instance_dump import audit, dump

STATES = {"A": {"on": {"go": "B"}}, "B": {"on": {"go": "A"}}}
WORK = {"A": {"on": {"go": "B"}, "invoke": {"src": "pack", "queue": "pack"}}, "B": {"on": {"go": "A"}}}
ACTORS = pytest.mark.parametrize("actor", ["", "ann"])


def versions(engine, number, **options):
    """Publish versions of one machine that differ in a field only."""
    for count in range(number):
        engine.publish(machine("thing", STATES, context={"n": count}, **options))


def create(engine, version, *ids):
    for id in ids:
        engine.create("thing", id, version=version, actor="eve")


def numbers(engine, *ids):
    return [engine.get("thing", id).version for id in ids]


@ACTORS
@pytest.mark.parametrize("states", [STATES, WORK])
@pytest.mark.parametrize("undo", ["7d", "0"])
def test_instances_that_were_born_in_the_new_version_stay(engine, states, actor, undo):
    engine.publish(machine("thing", STATES))
    create(engine, 1, "old", "stepped")
    engine.publish(machine("thing", states, context={"n": 1}))
    plan = engine.plan("thing", 2, keep_undo=undo)
    assert engine.migrate(plan, actor=actor).moved == 2
    engine.fire("thing", "stepped", "go", actor="eve")
    create(engine, 2, "new")
    before = dump(engine, "thing", "new")
    run = engine.dry_run(plan.inverse())
    found = {(each.outcome, each.code, each.examples) for each in run.classes}
    assert ("kept", "SB634", ("new",)) in found
    (reason,) = {each.reason for each in run.classes if each.code == "SB634"}
    assert reason == f"plan {plan.id} did not bring it to version 2"
    back = engine.migrate(plan.inverse(), actor=actor)
    assert (back.moved, back.kept, back.refused, back.already) == (2, 1, [], 0)
    assert numbers(engine, "old", "stepped", "new") == [1, 1, 2]
    assert dump(engine, "thing", "new") == before
    assert engine.migrate(plan.inverse()).kept == 1
    audit(engine, "thing")


@ACTORS
def test_neither_a_trimmed_history_nor_many_steps_make_the_move_forgotten(engine, actor):
    versions(engine, 2, history=2)
    create(engine, 1, "old")
    plan = engine.plan("thing", 2, keep_undo="0")
    engine.migrate(plan, actor=actor)
    for _ in range(40):
        engine.fire("thing", "old", "go")
    assert engine.migrate(plan.inverse()).moved == 1
    assert numbers(engine, "old") == [1]


@ACTORS
def test_moves_are_taken_back_one_after_the_other(engine, actor):
    versions(engine, 3)
    create(engine, 1, "first")
    create(engine, 2, "second")
    before = dump(engine, "thing", "first")
    one = engine.plan("thing", 2, from_versions=[1], keep_undo="0")
    two = engine.plan("thing", 3, from_versions=[2], keep_undo="0")
    engine.migrate(one)
    engine.migrate(two, actor=actor)
    assert engine.migrate(one.inverse()).moved == 0
    assert engine.migrate(two.inverse()).moved == 2
    back = engine.migrate(one.inverse())
    assert (back.moved, back.kept) == (1, 1)
    assert numbers(engine, "first", "second") == [1, 2]
    assert actor or dump(engine, "thing", "first") == before
    audit(engine, "thing")


def test_a_plan_for_several_versions_leads_each_back_to_its_own(engine):
    versions(engine, 3)
    create(engine, 1, "a")
    create(engine, 2, "b")
    create(engine, 3, "c")
    plan = engine.plan("thing", 3, keep_undo="0")
    engine.migrate(plan)
    assert sum(each.count for each in engine.dry_run(plan.inverse()).classes if each.outcome == "moves") == 2
    back = engine.migrate(plan.inverse())
    assert (back.moved, back.kept) == (2, 1)
    assert numbers(engine, "a", "b", "c") == [1, 2, 3]


def test_another_move_to_the_same_version_is_not_taken_back(engine):
    versions(engine, 3)
    create(engine, 1, "a")
    create(engine, 2, "b")
    one = engine.plan("thing", 3, from_versions=[1])
    other = engine.plan("thing", 3, from_versions=[2])
    engine.migrate(one)
    engine.migrate(other)
    back = engine.migrate(one.inverse())
    assert (back.moved, back.kept) == (1, 1)
    assert numbers(engine, "a", "b") == [1, 3]


def test_many_moves_leave_a_short_mark(engine):
    versions(engine, 2)
    create(engine, 1, "a")
    to, fro = engine.plan("thing", 2), engine.plan("thing", 1)
    for plan in (to, fro) * 6:
        assert engine.migrate(plan).moved == 1
    assert len(engine.client.hget(engine.keys.partition("thing").instance("a"), "_plans")) <= 64
    for plan in (fro, to, fro, to):
        assert engine.migrate(plan.inverse()).moved == 1
    assert engine.fire("thing", "a", "go").state == "B"


@pytest.fixture
def brought(engine):
    """Ten instances that a plan brought to version 2, and ten that were born there; answers the plan."""
    versions(engine, 2)
    create(engine, 1, *(f"old{n}" for n in range(10)))
    plan = engine.plan("thing", 2)
    engine.migrate(plan, actor="ann")
    create(engine, 2, *(f"new{n}" for n in range(10)))
    return plan


def check_back(redis_url, prefix, plan):
    late = Engine.from_url(redis_url, prefix=prefix)
    back = late.migrate(plan.inverse())
    assert (back.moved, back.kept) == (10, 10)
    assert {one.id[:3]: one.version for one in late.find("thing").instances} == {"old": 1, "new": 2}
    late.client.close()


def test_what_the_move_brought_is_known_after_growing(engine, brought, redis_url, prefix):
    assert Repartition(engine.client, engine.keys, "thing", 4, settle=0).run().finished
    check_back(redis_url, prefix, brought)


def test_what_the_move_brought_is_known_after_an_import(engine, brought, redis_url, prefix, tmp_path):
    export(engine, tmp_path / "f", "thing")
    other = Engine.from_url(redis_url, prefix=f"{prefix}other:")
    assert read(other, tmp_path / "f", partitions=3).problems == []
    other.client.close()
    check_back(redis_url, f"{prefix}other:", brought)


def test_a_mark_of_a_move_is_checked_before_it_is_imported(engine, brought, redis_url, prefix, tmp_path):
    engine.client.hset(engine.keys.partition("thing").instance("old3"), "_plans", "x" * 65)
    export(engine, tmp_path / "f", "thing")
    other = Engine.from_url(redis_url, prefix=f"{prefix}other:")
    (problem,) = read(other, tmp_path / "f").problems
    other.client.close()
    assert "old3" in problem
    assert "the list of its moves has 65 bytes; 64 are allowed" in problem


def test_a_move_by_an_earlier_release_is_known_by_its_undo_record(engine, brought):
    """That release left no mark."""
    for n in range(10):
        engine.client.hdel(engine.keys.partition("thing").instance(f"old{n}"), "_plans")
    back = engine.migrate(brought.inverse())
    assert (back.moved, back.kept) == (10, 10)
