"""What fails is named, what is finished stays so, and operators may do what they do to any instance."""

from __future__ import annotations

import pytest

from machines.engine.errors import LeaseLost
from machines.mapreduce import MapFailed, NotFinished, Progress, ReduceFailed, RunFailed
from machines.mapreduce.store import CHUNK, RUN, Store
from machines.worker.job import Job
from machines.worker.registry import discover

from .app import handlers
from .builders import counts, made, ready, step, work_off, worked

OP = {"actor": "op", "reason": "a test"}


def take(engine, machine, queue):
    (taken,) = engine.take(machine, queue, "w")
    return taken, discover().get(taken.src).function


def fail_for_good(engine, taken, error, kind):
    """The last attempt, and a worker's look at what is to be told."""
    engine.fail(taken, str(error), kind=kind, retry=False)
    engine.tick(taken.machine)


def broken(engine):
    """A run of four chunks: the first is mapped, the third out of attempts, the others were in the hands of workers."""
    run = made(engine, [1, 2, 0, 4], map_function=handlers.halved, chunks=4)
    run.map()
    step(engine, RUN, "split")
    jobs = engine.take(CHUNK, "map", "w", count=4)
    assert [job.data["chunk"] for job in jobs] == [0, 1, 2, 3]
    function = discover().get(jobs[0].src).function
    function(Job(jobs[0]))
    engine.complete(jobs[0])
    with pytest.raises(ZeroDivisionError) as caught:
        function(Job(jobs[2]))
    fail_for_good(engine, jobs[2], caught.value, "ZeroDivisionError")
    return run


def test_a_map_that_fails_for_good_fails_the_run_and_names_the_chunk(engine):
    run = made(engine, [1, 2, 0, 4], map_function=handlers.halved, chunks=4)
    words = r"^chunk 2 of run totals:\w+ failed: ZeroDivisionError: division by zero$"
    with pytest.raises(MapFailed, match=words) as caught:
        worked(engine, run)
    assert (caught.value.chunk, caught.value.kind, caught.value.run) == (2, "ZeroDivisionError", run.id)
    assert run.progress().state == "failed"
    assert engine.jobs(CHUNK, "map", place="handled")[0].attempt == 3


def test_the_other_chunks_are_stopped_and_their_jobs_withdrawn(engine):
    run = broken(engine)
    assert counts(engine, CHUNK) == {"mapped": 1, "stopped": 2, "failed": 1}
    assert engine.queues(CHUNK)["map"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 1}
    assert [chunk.data["chunk"] for chunk in run.chunks("failed")] == [2]
    assert sorted(chunk.data["chunk"] for chunk in run.chunks("stopped")) == [1, 3]
    assert len(run.chunks("stopped", limit=1)) == 1


def test_a_failed_run_is_tried_again_from_where_it_was(engine):
    run = broken(engine)
    engine.force(CHUNK, f"{run.id}:2", "stopped", data={"map": "sum"}, **OP)  # what was wrong is put right
    run.retry()
    assert work_off(engine) == 1 + 3 + 1
    assert run.result() == 1 + 0.5 + 0 + 0.25
    assert engine.get(RUN, run.id).data.get("error") is None


def test_a_reduce_that_fails_is_told_apart(engine):
    run = made(engine, [1, 2], reduce_function=handlers.failing, chunks=2)
    run.map()
    for queue in ((RUN, "split"), (CHUNK, "map"), (CHUNK, "map")):
        step(engine, *queue)
    taken, function = take(engine, RUN, "reduce")
    with pytest.raises(ValueError, match="cannot reduce 2 parts") as caught:
        function(Job(taken))
    fail_for_good(engine, taken, caught.value, "ValueError")
    with pytest.raises(ReduceFailed, match="ValueError: cannot reduce 2 parts"):
        run.result()
    assert run.progress() == Progress(2, 2, "failed")


def test_a_map_that_gives_no_json_says_so(engine):
    run = made(engine, [1], map_function=handlers.strange)
    run.map()
    step(engine, RUN, "split")
    taken, function = take(engine, CHUNK, "map")
    with pytest.raises(Exception, match="what the map gave is not JSON"):
        function(Job(taken))


def test_items_that_are_gone_fail_the_run(engine):
    run = made(engine, [1])
    run.map()
    step(engine, RUN, "split")
    Store(engine, run.id).remove()
    taken, function = take(engine, CHUNK, "map")
    with pytest.raises(Exception, match="the items of run .* are gone") as caught:
        function(Job(taken))
    fail_for_good(engine, taken, caught.value, "ItemsLost")
    with pytest.raises(MapFailed, match="ItemsLost"):
        run.result()


def test_a_split_that_fails_fails_the_run(engine):
    run = made(engine, [1])
    run.map()
    taken, _ = take(engine, RUN, "split")
    fail_for_good(engine, taken, "no memory", "MemoryError")
    with pytest.raises(RunFailed, match=f"^run {run.id} failed: MemoryError: no memory"):
        run.reduce()


def test_there_is_no_result_before_the_end(engine):
    run = made(engine, [1])
    with pytest.raises(NotFinished, match=r"is collecting: 0 of 10 chunks are mapped; call map\(\) first"):
        run.reduce()
    run.map()
    with pytest.raises(NotFinished, match="is mapping: 0 of 10"):
        run.reduce(timeout=0.05)
    with pytest.raises(NotFinished):
        run.result()


def test_a_chunk_said_twice_counts_once(engine):
    """A counter would be at two, and the sum without its last chunk."""
    run = made(engine, [1, 2, 3], chunks=3)
    run.map()
    step(engine, RUN, "split")
    step(engine, CHUNK, "map")
    for _ in range(3):
        engine.fire(RUN, run.id, "mapped", {"chunk": engine.get(RUN, run.id).data["finished"][0]})
        engine.fire(RUN, run.id, "mapped", {"chunk": 99})
    assert run.progress() == Progress(1, 3, "mapping")
    work_off(engine)
    assert run.result() == 6


def test_a_chunk_that_two_workers_map_counts_once(engine):
    """The first one was silent for too long, and finishes in spite of that."""
    run = made(engine, [1, 2], chunks=2)
    run.map()
    step(engine, RUN, "split")
    slow, function = take(engine, CHUNK, "map")
    engine.sweep(CHUNK, now=slow.lease_until)
    engine.sweep(CHUNK, now=slow.lease_until + 60_000)
    work_off(engine)
    function(Job(slow))
    with pytest.raises(LeaseLost):
        engine.complete(slow)
    assert run.result() == 3
    assert len(engine.get(RUN, run.id).data["finished"]) == 2


def test_a_split_that_died_half_way_is_done_again(engine, monkeypatch):
    run = made(engine, range(6), chunks=3)
    run.map()
    taken, function = take(engine, RUN, "split")
    create, made_chunks = engine.create, []
    monkeypatch.setattr("machines.mapreduce.handlers.get_engine", lambda: engine)

    def dying(machine, id, *args, **options):
        if len(made_chunks) == 2:
            raise KeyboardInterrupt
        made_chunks.append(id)
        return create(machine, id, *args, **options)

    monkeypatch.setattr(engine, "create", dying)
    with pytest.raises(KeyboardInterrupt):
        function(Job(taken))
    monkeypatch.undo()
    engine.sweep(RUN, now=taken.lease_until)
    engine.sweep(RUN, now=taken.lease_until + 60_000)
    work_off(engine)
    assert run.result() == 15
    assert counts(engine, CHUNK) == {"mapped": 3}


def test_a_suspended_run_goes_on_where_its_chunks_have_got_to(engine):
    run = made(engine, range(6), chunks=3)
    run.map()
    engine.suspend(RUN, run.id, **OP)
    work_off(engine)
    assert run.progress() == Progress(0, 3, "mapping")
    assert counts(engine, CHUNK) == {"mapped": 3}
    engine.resume(RUN, run.id, **OP)
    work_off(engine)
    assert run.result() == 15


def test_a_suspended_chunk_holds_up_its_run_and_no_other(engine):
    run, other = made(engine, range(6), chunks=3), made(engine, [7])
    run.map()
    other.map()
    step(engine, RUN, "split")
    step(engine, RUN, "split")
    engine.suspend(CHUNK, f"{run.id}:1", **OP)
    work_off(engine)
    assert other.result() == 7
    assert run.progress() == Progress(2, 3, "mapping")
    engine.resume(CHUNK, f"{run.id}:1", **OP)
    work_off(engine)
    assert run.result() == 15


def test_chunks_of_a_deleted_run_go_with_their_jobs(engine):
    run, other = made(engine, range(6), chunks=3), made(engine, [7])
    run.map()
    other.map()
    step(engine, RUN, "split")
    step(engine, RUN, "split")
    engine.delete(RUN, run.id, **OP)
    while ready(engine, CHUNK, "map"):
        taken, function = take(engine, CHUNK, "map")
        function(Job(taken))
        if taken.data["run"] == other.id:
            engine.complete(taken)
    work_off(engine)
    assert other.result() == 7
    assert counts(engine, CHUNK) == {"mapped": 1}


def test_a_run_forced_back_finds_what_it_missed(engine):
    """A chunk was deleted, one was forced to its end, and one told a run that was elsewhere."""
    run = made(engine, range(8), chunks=4)
    run.map()
    step(engine, RUN, "split")
    engine.force(RUN, run.id, "collecting", **OP)
    step(engine, CHUNK, "map")
    engine.delete(CHUNK, f"{run.id}:3", **OP)
    engine.force(RUN, run.id, "mapping", **OP)
    work_off(engine)
    assert run.result() == sum(range(8))


def test_a_chunk_forced_to_its_end_without_its_part_is_named(engine):
    run = made(engine, range(4), chunks=2)
    run.map()
    step(engine, RUN, "split")
    engine.force(CHUNK, f"{run.id}:1", "mapped", **OP)
    work_off(engine)
    engine.force(RUN, run.id, "mapping", **OP)
    step(engine, RUN, "split")
    taken, function = take(engine, RUN, "reduce")
    with pytest.raises(Exception, match="what chunk 1 of run .* gave is gone"):
        function(Job(taken))


def test_a_run_is_removed_while_it_works(engine):
    run = made(engine, range(6), chunks=3)
    run.map()
    step(engine, RUN, "split")
    step(engine, CHUNK, "map")
    run.remove()
    taken, function = take(engine, RUN, "remove")
    function(Job(taken))
    assert counts(engine, RUN) == counts(engine, CHUNK) == {}
    assert engine.queues(CHUNK)["map"]["ready"] == 0
