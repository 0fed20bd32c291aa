"""A machine grows while it runs: each instance is in one partition, answers all the time, and keeps what it has."""

from __future__ import annotations

import pytest

from machines.engine import BadInput, Engine, InstanceExists, UnknownInstance
from machines.engine.keys import choose_partition
from machines.engine.transfer.repartitioning import Outrun, Repartition
from tests.engine.builders import NOW, door, errand, machine, publish

from .worlds import describe, export, fill, read


def grow(engine: Engine, name: str, to: int, **options) -> Repartition:
    found = Repartition(engine.client, engine.keys, name, to, settle=0, **options)
    found.report = found.run()
    return found


@pytest.fixture
def late(redis_url, prefix):
    """An engine that read the number of partitions before the machine grew, and reads it no more."""
    engine = Engine.from_url(redis_url, prefix=prefix)
    engine._catalog._growth.find = lambda machine, refresh=False: None
    yield engine
    engine.client.close()


@pytest.fixture
def fresh(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix)
    yield engine
    engine.client.close()


def homes(engine, name, partitions):
    """Instance -> the numbers of the partitions that hold it."""
    found: dict[str, list[int]] = {}
    for number in range(partitions):
        head = engine.keys.partition(name, number).instance("")
        for key in engine.client.scan_iter(match=f"{engine.keys.prefix}*:i:*", count=10_000):
            if key.startswith(head):
                found.setdefault(key.removeprefix(head), []).append(number)
    return found


def test_everything_of_a_machine_is_as_before_in_eight_partitions(engine, fresh):
    ids = fill(engine, 40)
    before = describe(engine, ids)
    done = grow(engine, "order", 8)
    assert describe(fresh, ids) == before
    assert homes(fresh, "order", 8) == {id: [choose_partition(id, 8)] for id in ids}
    assert done.report.finished
    assert (done.report.before, done.report.moved) == (1, sum(choose_partition(id, 8) != 0 for id in ids))
    assert sum(done.report.sizes) == 40


def test_a_process_that_knows_the_old_number_goes_on(engine, late, fresh):
    publish(late, door(), *[f"d{n}" for n in range(30)])
    first = late.fire("door", "d1", "open", key="once")
    grow(engine, "door", 4)
    assert late.fire("door", "d1", "open", key="once").outcome.replayed
    assert fresh.fire("door", "d1", "open", key="once").revision == first.revision
    for number in range(30):
        assert late.get("door", f"d{number}").id == f"d{number}"
        with pytest.raises(InstanceExists):
            late.create("door", f"d{number}")
    late.create("door", "new")
    assert homes(fresh, "door", 4)["new"] == [choose_partition("new", 4)]
    assert fresh.get("door", "new").revision == 1
    with pytest.raises(UnknownInstance):
        late.get("door", "none")
    late.delete("door", "d7", actor="ann", reason="x")
    with pytest.raises(UnknownInstance):
        fresh.get("door", "d7")
    opened = late.fire_many([("door", f"d{n}", "open") for n in range(10, 20)])
    assert {i.revision for i in opened} == {2}


def test_growing_twice_leads_the_oldest_callers_on(engine, late, fresh):
    ids = [f"d{n}" for n in range(60)]
    publish(late, door(), *ids)
    late.get("door", "d1")
    grow(engine, "door", 2)
    engine.client.hset(engine.keys.growth, "door", "1:2:1:1")  # the minute after it is over
    stop = iter([False] * 4)
    half = grow(engine, "door", 8, stopped=lambda: next(stop, True))
    assert not half.report.finished
    assert [late.get("door", id).id for id in ids] == ids
    late.create("door", "newer")
    assert grow(engine, "door", 8).report.finished
    assert [late.get("door", id).id for id in [*ids, "newer"]] == [*ids, "newer"]
    assert homes(fresh, "door", 8) == {id: [choose_partition(id, 8)] for id in [*ids, "newer"]}


def test_a_number_that_is_no_multiple_and_another_goal_are_refused(engine):
    publish(engine, door(), "a")
    grow(engine, "door", 2)
    engine.client.hset(engine.keys.growth, "door", "1:2:1:1")
    with pytest.raises(BadInput, match="grows to a multiple of them: 4, 6"):
        grow(engine, "door", 3)
    grow(engine, "door", 4, stopped=lambda: True)
    with pytest.raises(BadInput, match="grows to 4 partitions already"):
        grow(engine, "door", 8)


def test_the_same_command_again_finds_it_done(engine):
    publish(engine, door(), "a", "b")
    grow(engine, "door", 2)
    again = grow(engine, "door", 2).report
    assert (again.finished, again.moved, again.before, again.after) == (True, 0, 2, 2)


def test_while_a_machine_grows_it_is_neither_exported_nor_imported(engine, tmp_path):
    publish(engine, door(), *[f"d{n}" for n in range(30)])
    export(engine, tmp_path / "f", "door")
    killed = Repartition(engine.client, engine.keys, "door", 4, settle=0)
    killed._move_all = lambda progress: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    with pytest.raises(BadInput, match="door grows to 4 partitions: finish that first"):
        export(engine, tmp_path / "g", "door")
    with pytest.raises(BadInput, match="door grows to 4 partitions: finish that first"):
        read(engine, tmp_path / "f")
    record = engine.client.fcall_ro("sb_export", 1, engine.keys.partition("door").root, "instances", "d1")[1]
    stray = next(f"s{n}" for n in range(99) if choose_partition(f"s{n}", 4) != 0)
    root = engine.keys.partition("door").root
    reply = engine.client.fcall("sb_import", 1, root, "x1", "", record.replace('"id":"d1"', f'"id":"{stray}"'))
    assert reply[1:] == ["refused", "its machine grows, and this is not its partition"]


def test_an_instance_whose_job_runs_moves_when_the_job_is_done(engine, fresh):
    publish(engine, errand(), *[f"e{n}" for n in range(8)])
    for number in range(8):
        engine.fire("errand", f"e{number}", "start")
    jobs = engine.take("errand", "work", "w1", count=8)
    assert len(jobs) == 8
    rounds = iter(range(100))

    def stopped():
        if next(rounds) == 12:
            assert all(engine.complete(job) is not None for job in jobs)
        return False

    done = grow(engine, "errand", 4, stopped=stopped)
    assert done.report.taken == 0
    assert fresh.counts("errand") == {"Idle": 0, "Busy": 0, "Done": 8, "Failed": 0}
    assert {fresh.get("errand", f"e{n}").revision for n in range(8)} == {3}


def test_after_a_while_an_instance_moves_although_a_worker_has_its_job(engine, fresh):
    publish(engine, errand(), *[f"e{n}" for n in range(8)])
    for number in range(8):
        engine.fire("errand", f"e{number}", "start")
    jobs = engine.take("errand", "work", "w1", count=8)
    done = grow(engine, "errand", 4, max_wait=0)
    moved = [job for job in jobs if choose_partition(job.instance, 4) != 0]
    assert done.report.taken == len(moved) > 0
    held = engine.renew(jobs, 30_000)
    assert [why for job, why in zip(jobs, held, strict=True) if job in moved] == ["withdrawn"] * len(moved)
    again = fresh.take("errand", "work", "w2", count=8)
    assert {job.instance for job in again} == {job.instance for job in moved}
    assert {job.attempt for job in again} == {1}
    for job in again:
        fresh.complete(job)
    for job in jobs:
        if job not in moved:
            fresh.complete(job)
    assert fresh.counts("errand")["Done"] == 8
    assert fresh.stats("errand")["work"].enqueued == 8, "a job that moves is enqueued once"


def test_timers_fire_and_paused_queues_stay_paused_in_new_partitions(engine, fresh):
    waiting = machine(
        "wait", {"A": {"after": {"10s": "B"}, "on": {"work": {"actions": {"enqueue": {"src": "x"}}}}}, "B": {}}
    )
    publish(engine, waiting, *[f"w{n}" for n in range(20)])
    engine.pause("wait", "x", actor="ann", reason="no")
    grow(engine, "wait", 4)
    for number in range(20):
        fresh.fire("wait", f"w{number}", "work", now=NOW + 1)
    assert fresh.take("wait", "x", "w", count=20) == []
    assert fresh.tick("wait", now=NOW + 20_000) >= 20
    assert fresh.counts("wait") == {"A": 0, "B": 20}


def test_a_later_run_ends_an_earlier_one(engine):
    publish(engine, door(), *[f"d{n}" for n in range(20)])
    first = Repartition(engine.client, engine.keys, "door", 4, settle=0)
    first._begin()
    first._publish_everywhere()
    first._grow()
    grow(engine, "door", 4, stopped=lambda: True)
    with pytest.raises(Outrun):
        first._move_all(lambda done, total: None)


def test_what_a_killed_run_left_between_two_partitions_is_brought_into_force(engine, late, fresh):
    ids = [f"d{n}" for n in range(20)]
    publish(late, door(), *ids)
    late.get("door", "d1")
    killed = Repartition(engine.client, engine.keys, "door", 4, settle=0)
    killed._arrive = lambda departed: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    gone = [id for id in ids if id not in homes(fresh, "door", 4)]
    moving = sum(choose_partition(id, 4) != 0 for id in ids)
    assert 0 < len(gone) <= moving  # a slow call takes fewer
    assert Repartition(engine.client, engine.keys, "door", 4).rescue() == 0  # a run may be alive
    engine.client.delete(engine.keys.growth_alive("door"))
    assert Repartition(engine.client, engine.keys, "door", 4).rescue() == len(gone)
    assert [late.get("door", id).revision for id in ids] == [1] * 20
    done = grow(engine, "door", 4)
    assert (done.report.moved, done.report.finished) == (moving - len(gone), True)


def test_a_caller_of_an_instance_between_two_partitions_waits_for_no_command(engine, late):
    publish(late, door(), *[f"d{n}" for n in range(20)])
    late.get("door", "d1")
    killed = Repartition(engine.client, engine.keys, "door", 4, settle=0)
    killed._arrive = lambda departed: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    assert [late.fire("door", f"d{n}", "open").revision for n in range(5)] == [2] * 5
    assert [i.revision for i in late.fire_many([("door", f"d{n}", "open") for n in range(5, 10)])] == [2] * 5
    with pytest.raises(InstanceExists):
        late.create("door", "d11")


def test_a_version_published_meanwhile_is_on_all_partitions(engine, fresh):
    publish(engine, door(), *[f"d{n}" for n in range(20)])
    rounds = iter(range(100))

    def stopped():
        if next(rounds) == 2:
            engine.publish({**door(), "description": "newer"})
        return False

    grow(engine, "door", 4, stopped=stopped)
    for number in range(20):
        assert fresh.create("door", f"n{number}").version == 2


def test_callers_that_wait_for_replicas_are_sent_on_too(engine, redis_url, prefix):
    waiting = Engine.from_url(redis_url, prefix=prefix, replicas=1, replica_timeout=1)
    publish(waiting, door(), *[f"d{n}" for n in range(12)])
    waiting.get("door", "d1")
    grow(engine, "door", 4)
    waiting._catalog._growth.find = lambda machine, refresh=False: None
    waiting._catalog._partitions["door"] = 1
    assert {waiting.fire("door", f"d{n}", "open").outcome.durability for n in range(6)} == {"written, not replicated"}
    opened = waiting.fire_many([("door", f"d{n}", "open") for n in range(6, 12)])
    assert [(i.revision, i.outcome.durability) for i in opened] == [(2, "written, not replicated")] * 6
    assert waiting.create("door", "new").revision == 1
    assert set(homes(engine, "door", 4)["new"]) == {choose_partition("new", 4)}
    waiting.client.close()
