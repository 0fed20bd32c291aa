"""A dry run counts every instance once, in the class of what the plan does with it, whatever moves meanwhile."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from machines.engine import Engine, errors
from machines.engine.transfer.repartitioning import Repartition
from machines.engine.versions.fleet_walk import FleetWalk
from machines.engine.versions.records import DryRun

from ..letters import SECOND, letters, to_second


def found(run):
    """Configuration and outcome -> count."""
    return {(", ".join(each.configuration), each.outcome): each.count for each in run.classes}


def assert_whole(run, total):
    assert run.total == total == sum(each.count for each in run.classes)
    refused = sum(each.count for each in run.classes if each.outcome == "refused")
    assert len({one.id for one in run.refused}) == len(run.refused) == refused
    assert all(1 <= len(each.examples) == min(each.count, 10) for each in run.classes)


def test_every_instance_is_in_one_class(engine):
    ids = letters(engine, 300)
    for id in ids[:50]:
        engine.fire("letter", id, "post")
    for id in ids[50:80]:
        engine.fire("letter", id, "keep")
    plan = to_second(engine)
    engine.create("letter", "new")
    run = engine.dry_run(plan)
    assert_whole(run, 301)
    assert found(run) == {
        ("written", "moves"): 220,
        ("posted", "moves"): 50,
        ("kept", "refused"): 30,
        ("written", "kept"): 1,
    }
    posted = next(each for each in run.classes if each.configuration == ("posted",))
    assert (posted.version, posted.target, sum(posted.pending["timers"].values())) == (1, ("sent",), 1)
    assert {one.id for one in run.refused} == set(ids[50:80])
    assert all((one.version, one.state) == (1, "kept") and one.code and one.reason for one in run.refused)


def test_examples_are_instances_of_their_class(engine):
    letters(engine, 40)
    for each in engine.dry_run(to_second(engine)).classes:
        for instance in engine.get_many("letter", each.examples):
            assert (instance.version, tuple(instance.configuration)) == (each.version, each.configuration)


def test_pending_work_makes_classes(engine):
    ids = letters(engine, 8)
    for id in ids[:6]:
        engine.fire("letter", id, "work")
    for job in engine.take("letter", "print", "w", count=4)[:2]:
        engine.fail(job, "no", retry=False)
    engine.suspend("letter", ids[6], actor="ann", reason="a test")
    run = engine.dry_run(to_second(engine))
    assert_whole(run, 8)
    places = {tuple(each.pending.get("jobs", {}).values()): each.count for each in run.classes}
    assert {place: n for place, n in places.items() if place} == {("ready",): 2, ("leased",): 2, ("dead",): 2}
    assert [each.count for each in run.classes if each.pending.get("suspended")] == [1]


def test_instances_that_move_while_it_walks_count_once(engine):
    """Between any two pages some go ahead of the walk, some behind it, some are created and some deleted."""
    ids = letters(engine, 1500)
    plan = to_second(engine)
    walk = FleetWalk(engine._caller, engine._catalog, plan, 1)
    created = deleted = page = 0
    for page, _ in enumerate(walk.pages()):
        if page < 12:
            for id in ids[page::12][:40]:
                engine.force("letter", id, "kept" if page % 2 else "lost", actor="ann", reason="it moves")
            engine.create("letter", f"n{page}", version=1)
            created += 1
            engine.delete("letter", ids[-page - 1], actor="ann", reason="it goes")
            deleted += 1
    run = walk.classes.build()
    assert page >= 2
    alive = 1500 + created - deleted
    assert alive <= run.total <= 1500 + created
    assert_whole(run, run.total)
    assert not any(walk.classes.is_new(id) for id in ids[:-deleted])
    assert not any(walk.classes.is_new(f"n{number}") for number in range(min(created, page)))


def test_one_that_is_always_somewhere_else_is_found(engine):
    """It stands in a state that the walk has read, whenever the walk comes to the other."""
    letters(engine, 1200)
    engine.create("letter", "hare", version=1)
    walk = FleetWalk(engine._caller, engine._catalog, to_second(engine), 1)
    for page, _ in enumerate(walk.pages()):
        if page < 5:
            engine.force("letter", "hare", "arrived" if page % 2 else "written", actor="ann", reason="it runs")
    assert not walk.classes.is_new("hare")
    assert walk.classes.total == 1201


def test_those_that_keep_their_time_of_entry_are_found(engine):
    """A migration keeps the time of entry, so that only the number of instances tells that one is missing."""
    letters(engine, 1200)
    engine.create("letter", "mover", version=1)
    engine.fire("letter", "mover", "post")
    walk = FleetWalk(engine._caller, engine._catalog, to_second(engine), 1)
    partition = engine.keys.partition("letter")
    for page, _ in enumerate(walk.pages()):
        if page == 0:
            score = engine.client.zscore(partition.state("posted"), "mover")
            engine.client.zrem(partition.state("posted"), "mover")
            engine.client.zadd(partition.state("arrived"), {"mover": score})
    assert not walk.classes.is_new("mover")


def test_times_of_entry_in_the_future_end_the_walk(engine):
    ids = letters(engine, 30)
    for id in ids:
        engine.fire("letter", id, "keep", now=4_000_000_000_000)
    assert_whole(engine.dry_run(to_second(engine)), 30)


def test_a_machine_in_several_partitions(redis_url, prefix):
    spread = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    with closing(spread.client):
        letters(spread, 200)
        assert_whole(spread.dry_run(to_second(spread)), 200)


def test_a_machine_that_grows_while_it_is_walked(engine):
    """Its instances go to other partitions with the time of their entry, in the middle of the walk and all the time."""
    letters(engine, 1200)
    plan = to_second(engine)
    walk = FleetWalk(engine._caller, engine._catalog, plan, 1)
    for page, _ in enumerate(walk.pages()):
        if page == 0:
            Repartition(engine.client, engine.keys, "letter", 3, settle=0).run()
    assert walk.classes.total == 1200


def test_a_machine_that_is_between_two_numbers_of_partitions(engine):
    letters(engine, 300)
    plan = to_second(engine)
    growing = Repartition(engine.client, engine.keys, "letter", 3, settle=0)
    growing._begin()
    assert_whole(engine.dry_run(plan), 300)
    growing.run()
    assert_whole(engine.dry_run(plan), 300)


def test_regions_count_once(engine):
    both = {
        "id": "pair",
        "initial": "P",
        "states": {
            "P": {
                "type": "parallel",
                "states": {
                    "A": {"initial": "a1", "states": {"a1": {"on": {"a": "a2"}}, "a2": {}}},
                    "B": {"initial": "b1", "states": {"b1": {"on": {"b": "b2"}}, "b2": {}}},
                },
            }
        },
    }
    engine.publish(both)
    for number in range(20):
        engine.create("pair", f"p{number}", version=1)
    for number in range(5):
        engine.fire("pair", f"p{number}", "b")
    engine.publish(both | {"description": "the second"})
    run = engine.dry_run(engine.plan("pair", 2))
    assert_whole(run, 20)
    assert found(run) == {("a1, b1", "moves"): 15, ("a1, b2", "moves"): 5}


def test_a_key_that_others_wrote_is_listed(engine):
    letters(engine, 3)
    partition = engine.keys.partition("letter")
    engine.client.hset(partition.instance("foreign"), "colour", "red")
    engine.client.zadd(partition.state("written"), {"foreign": 1})
    run = engine.dry_run(to_second(engine))
    assert [(one.id, one.code) for one in run.refused] == [("foreign", "SB620")]
    assert_whole(run, 4)


def test_where_the_data_decides_each_instance_is_looked_at(engine):
    """Reasons hold no value of the data: those with the same fault are a class, and may be shown to everybody."""
    letters(engine, 20, note="12")
    for number in range(10):
        engine.create("letter", f"b{number}", {"note": f"secret {number}"}, version=1)
    properties = SECOND["context"]["properties"] | {"note": {"type": "integer", "default": 0}}
    engine.publish(SECOND | {"context": {"type": "object", "properties": properties}})
    plan = engine.plan("letter", 2, states={"posted": "sent"})
    run = engine.dry_run(plan)
    assert_whole(run, 30)
    assert found(run) == {("written", "moves"): 20, ("written", "refused"): 10}
    assert {one.code for one in run.refused} == {"SB613"}
    assert "secret" not in json.dumps(run.as_dict()["classes"])
    moved = engine.migrate(plan, actor="ann", reason="a test")
    assert sorted(one.id for one in moved.refused) == sorted(one.id for one in run.refused)


def test_an_expression_that_fails_for_some(engine):
    letters(engine, 12, note="ab")
    for number in range(3):
        engine.create("letter", f"s{number}", {"note": ""}, version=1)
    run = engine.dry_run(to_second(engine, data={"stamps": "4 // len(note)"}))
    assert_whole(run, 15)
    assert [(one.id, one.code) for one in run.refused] == [(f"s{number}", "SB614") for number in range(3)]


def test_a_timer_whose_delay_depends_on_the_data(engine):
    letters(engine, 6, stamps=2)
    engine.create("letter", "none", {"stamps": 0}, version=1)
    states = SECOND["states"] | {"written": {"after": {"1000 / stamps": "lost"}}}
    engine.publish(SECOND | {"states": states})
    run = engine.dry_run(engine.plan("letter", 2, states={"posted": "sent"}))
    assert_whole(run, 7)
    assert [(one.id, one.code) for one in run.refused] == [("none", "SB617")]


def test_the_way_back_is_tried_like_any_plan(engine):
    ids = letters(engine, 20)
    for id in ids[:5]:
        engine.fire("letter", id, "post")
    plan = to_second(engine)
    engine.migrate(plan, actor="ann", reason="a test")
    for id in ids[:2]:
        engine.fire("letter", id, "arrive")
    run = engine.dry_run(plan.inverse())
    assert_whole(run, 20)
    assert {(", ".join(each.configuration), each.outcome, each.target): each.count for each in run.classes} == {
        ("written", "moves", ("written",)): 15,
        ("sent", "moves", ("posted",)): 3,
        ("arrived", "moves", ("arrived",)): 2,
    }


def test_a_way_back_to_several_versions_leads_each_to_its_own(engine):
    ids = letters(engine, 6)
    engine.publish(SECOND)
    for number in range(4):
        engine.create("letter", f"t{number}")
    engine.publish(SECOND | {"description": "the third"})
    plan = engine.plan("letter", 3, states={"posted": "sent"})
    engine.migrate(plan, actor="ann", reason="a test")
    back = plan.inverse()
    run = engine.dry_run(back)
    assert_whole(run, 10)
    assert all(each.outcome == "moves" for each in run.classes)
    engine.migrate(back, actor="ann", reason="a test")
    assert [found.version for found in engine.get_many("letter", [ids[0], "t0"])] == [1, 2]


def test_some_instances_are_classified_by_their_ids(engine):
    letters(engine, 5)
    engine.fire("letter", "l00003", "keep")
    found = engine.classify(to_second(engine), ["l00001", "l00003", "nobody"])
    assert {id: about.outcome for id, about in found.items()} == {"l00001": "moves", "l00003": "refused"}


def test_an_empty_machine_has_no_classes(engine):
    letters(engine, 0)
    run = engine.dry_run(to_second(engine))
    assert (run.total, run.classes, run.refused) == (0, [], [])


@pytest.mark.parametrize("share", [0, -1, 1.5, "much", True, None])
def test_a_share_is_a_part_of_the_server(engine, share):
    letters(engine, 1)
    with pytest.raises(errors.BadInput) as caught:
        engine.dry_run(to_second(engine), share=share)
    assert caught.value.code == "SB622"


def test_a_partition_that_does_not_answer_is_an_error(engine):
    letters(engine, 3)
    walk = FleetWalk(engine._caller, engine._catalog, to_second(engine), 1)

    class Away:
        def call(self, *_):
            raise errors.EngineUnavailable("no route to it")

    walk._caller = Away()
    with pytest.raises(errors.EngineUnavailable) as caught:
        walk.run()
    assert (caught.value.code, caught.value.retry_safe) == ("SB621", True)


def test_a_dry_run_goes_through_json(engine):
    ids = letters(engine, 30)
    for id in ids[:20]:
        engine.fire("letter", id, "keep")
    run = engine.dry_run(to_second(engine))
    assert DryRun.from_dict(json.loads(json.dumps(run.as_dict()))) == run
    kept = DryRun.from_dict(json.loads(json.dumps(run.as_dict(refused=5))))
    assert (kept.total, kept.classes, kept.refused, kept.refused_count) == (30, run.classes, run.refused[:5], 20)


@pytest.mark.pure
@pytest.mark.parametrize("found", [{}, [], {"total": 1, "classes": [], "refused": []}, {"total": 0, "classes": [3]}])
def test_what_is_no_dry_run_is_refused(found):
    with pytest.raises(errors.BadInput) as caught:
        DryRun.from_dict(found)
    assert caught.value.code == "SB624"
