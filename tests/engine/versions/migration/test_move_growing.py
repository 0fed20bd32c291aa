"""A fleet is moved to another version while its machine grows: each instance once, and none is lost."""

from __future__ import annotations

import threading

import pytest

from machines.engine import Engine, PlanError
from machines.engine.keys import choose_partition
from machines.engine.transfer.repartitioning import Repartition
from machines.engine.versions.migration import Mover

from ..letters import letters, to_second

COUNT = 300


@pytest.fixture
def mover(redis_url, prefix):
    """An engine that learns of other partitions as a running process does."""
    engine = Engine.from_url(redis_url, prefix=prefix)
    yield engine
    engine.client.close()


@pytest.fixture
def fresh(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix)
    yield engine
    engine.client.close()


def check_each_once(fresh, ids, moved, refused=()):
    """Each instance is in version 2 with one step (migrate), or among the refused and untouched."""
    found = fresh.get_many("letter", ids)
    assert {one.id for one in found if one.version == 1} == set(refused)
    assert {one.id for one in moved.refused} == set(refused)
    assert moved.moved + len(moved.refused) + moved.kept + moved.already == len(ids)
    for id in ids:
        steps = [step.event for step in fresh.history("letter", id)]
        assert steps.count("(migrate)") == (id not in refused), id


def grow(engine, to, **options):
    return Repartition(engine.client, engine.keys, "letter", to, settle=0, **options).run()


def test_a_mover_and_a_growing_machine_at_once(engine, mover, fresh):
    ids = letters(engine, COUNT)
    for id in ids[:9]:
        engine.fire("letter", id, "keep")
    for id in ids[9:60]:
        engine.fire("letter", id, "post")
    plan = to_second(mover)
    reports: list = []
    growing = threading.Thread(target=lambda: reports.append(grow(engine, 4)))
    growing.start()
    try:
        moved = mover.migrate(plan, actor="ann", reason="a test")
    finally:
        growing.join()
    assert reports[0].finished
    assert sum(reports[0].sizes) == COUNT
    check_each_once(fresh, ids, moved, ids[:9])
    for id in ids:
        key = fresh.keys.partition("letter", choose_partition(id, 4)).instance(id)
        assert fresh.client.exists(key) == 1


@pytest.mark.parametrize("stored", [1, 3, 6])
def test_a_move_while_the_new_partitions_get_their_versions(engine, mover, fresh, stored):
    """Of two versions for three new partitions, so many have been stored."""
    ids = letters(engine, 60)
    plan = to_second(mover)
    growing, moved = Repartition(engine.client, engine.keys, "letter", 4, settle=0), []
    store, calls = growing._catalog._store, []

    def store_and_move(*args):
        answer = store(*args)
        calls.append(args)
        if len(calls) == stored:
            mover._catalog.refresh()
            assert mover.dry_run(plan).total == 60
            moved.append(mover.migrate(plan, actor="ann", reason="a test"))
        return answer

    growing._catalog._store = store_and_move
    assert growing.run().finished
    assert moved[0].moved == 60
    check_each_once(fresh, ids, moved[0])


def test_a_move_to_a_version_that_the_new_partitions_lack(engine, mover, fresh, redis_url, prefix):
    """A process that does not know of the growth yet has published it on the old ones."""
    ids = letters(engine, 60)
    stop = iter([False] * 4)
    grow(engine, 4, stopped=lambda: next(stop, True))
    late = Engine.from_url(redis_url, prefix=prefix)
    late._catalog._growth.find = lambda machine, refresh=False: None
    plan = to_second(late)
    late.client.close()
    moved = mover.migrate(plan, actor="ann", reason="a test")
    assert grow(engine, 4).finished
    check_each_once(fresh, ids, moved)


def test_a_plan_for_a_version_that_no_partition_has_is_stale(engine, mover):
    letters(engine, 3)
    assert grow(engine, 4).finished
    plan = to_second(mover)
    lost = [engine.keys.partition("letter", n) for n in range(4)]
    for partition in lost:
        engine.client.hdel(partition.meta, "def:2")
        engine.client.delete(partition.definition(2))
    with pytest.raises(PlanError, match="has gone stale: version 2 is not published here"):
        Mover(mover._caller, mover._catalog, plan, actor="ann", reason="a test").run()


@pytest.mark.parametrize("passes", [2, 4, 6])
def test_a_run_of_a_mover_in_the_middle_of_growing(engine, mover, fresh, passes):
    """Some instances are in their new partitions, the others not yet."""
    ids = letters(engine, COUNT)
    plan = to_second(mover)
    mover.get("letter", ids[0])
    stop = iter([False] * passes)
    half = grow(engine, 4, stopped=lambda: next(stop, True))
    assert not half.finished
    assert 0 < half.moved < sum(choose_partition(id, 4) != 0 for id in ids)
    moved = mover.migrate(plan, actor="ann", reason="a test")
    assert grow(engine, 4).finished
    check_each_once(fresh, ids, moved)


@pytest.mark.parametrize("passes", [4, 1000])
def test_growing_in_the_middle_of_a_run_of_a_mover(engine, mover, fresh, passes):
    """Between two pages of the walk, some or all instances go to their new partitions."""
    ids = letters(engine, 1200)  # three pages
    plan = to_second(mover)
    run = Mover(mover._caller, mover._catalog, plan, actor="ann", reason="a test")
    walk, pages, stop = run._walk, [], iter([False] * passes)

    def grow_after_the_first_page():
        for page in walk():
            yield page
            pages.append(len(page))
            if len(pages) == 1:
                assert grow(engine, 4, stopped=lambda: next(stop, True)).finished is (passes > 100)

    run._walk = grow_after_the_first_page
    moved = run.run()
    assert pages[0] < len(ids)
    assert grow(engine, 4).finished
    check_each_once(fresh, ids, moved)


def test_a_mover_that_knows_the_old_number_is_sent_on(engine, mover, fresh):
    ids = letters(engine, COUNT)
    plan = to_second(mover)
    mover._catalog._growth.find = lambda machine, refresh=False: None
    mover.get("letter", ids[0])
    assert grow(engine, 4).finished
    moves = Mover(mover._caller, mover._catalog, plan, actor="ann", reason="a test").move(ids)
    assert [(one.id, one.outcome) for one in moves] == [(id, "moves") for id in ids]
    assert {one.version for one in fresh.get_many("letter", ids)} == {2}


def test_an_instance_between_two_partitions_is_moved_or_named(engine, mover, fresh):
    ids = letters(engine, 60)
    plan = to_second(mover)
    killed = Repartition(engine.client, engine.keys, "letter", 4, settle=0)
    killed._arrive = lambda departed: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    moved = mover.migrate(plan, actor="ann", reason="a test")
    assert grow(engine, 4).finished
    again = fresh.migrate(plan, actor="ann", reason="the rest")
    assert again.moved + again.already == 60
    assert moved.moved + again.moved == 60
    assert {one.version for one in fresh.get_many("letter", ids)} == {2}


def test_the_way_back_after_growing_goes_by_the_map(engine, mover, fresh):
    ids = letters(engine, 60)
    for id in ids[:20]:
        engine.fire("letter", id, "post")
    plan = to_second(mover)
    assert mover.migrate(plan, actor="ann", reason="a test").moved == 60
    assert grow(engine, 4).finished
    back = fresh.migrate(plan.inverse(), actor="ann", reason="wrong")
    assert (back.moved, back.refused) == (60, [])
    assert {(one.version, one.state) for one in fresh.get_many("letter", ids)} == {(1, "written"), (1, "posted")}
