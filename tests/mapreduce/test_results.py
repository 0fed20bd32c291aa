"""The result is what Python itself would get, whatever the items and however many."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import Engine
from machines.mapreduce import MapReduce, Progress
from machines.mapreduce.store import CHUNK, RUN, Plan, bounds

from .app import handlers
from .builders import counts, made, work_off, worked

TEXT = ["the cat and the dog", "the end", "", "of the cat"]


def finished(engine, run):
    """All work done in this thread, and the result."""
    run.map()
    work_off(engine)
    return run.result()


def test_workers_map_the_chunks_and_reduce_them(engine):
    run = made(engine, range(105))
    assert worked(engine, run) == sum(range(105))
    assert run.progress() == Progress(10, 10, "done")
    assert counts(engine, CHUNK) == {"mapped": 10}
    assert counts(engine, RUN) == {"done": 1}


def test_without_items_the_reduce_decides(engine):
    assert finished(engine, made(engine)) == 0
    assert finished(engine, made(engine, map_function=handlers.same, reduce_function=handlers.joined)) == []
    assert counts(engine, CHUNK) == {}


@pytest.mark.parametrize(("items", "chunks"), [(1, 10), (3, 10), (10, 10), (11, 10), (19, 10), (7, 1)])
def test_fewer_items_than_chunks_and_uneven_chunks_lose_nothing(engine, items, chunks):
    run = made(engine, range(items), map_function=handlers.same, reduce_function=handlers.joined, chunks=chunks)
    assert finished(engine, run) == list(range(items))
    assert run.progress().total == min(items, chunks)


def test_items_need_not_be_numbers(engine):
    run = made(engine, TEXT, map_function=handlers.words, reduce_function=handlers.all_words, chunks=3)
    assert finished(engine, run) == Counter(" ".join(TEXT).split())
    odd = ["", "\x00", "\ud800", "é😀", None, True, 1.5, 2**70, {"a": [{}]}, [[]], -0.0]
    run = made(engine, odd, map_function=handlers.same, reduce_function=handlers.joined, chunks=4)
    assert finished(engine, run) == odd


def test_a_sum_past_what_a_double_carries_stays_exact(engine):
    run = made(engine, [2**60, 1, 2**60])
    assert finished(engine, run) == 2**61 + 1
    assert engine.get(RUN, run.id).data["result"] is None


def test_a_result_that_is_small_stands_in_the_run_and_a_large_one_apart(engine):
    small, large = made(engine, [1, 2]), made(engine, [1], reduce_function=handlers.long)
    assert finished(engine, small) == engine.get(RUN, small.id).data["result"] == 3
    assert finished(engine, large) == "x" * 100_000
    assert engine.get(RUN, large.id).data["result"] is None


def test_builtins_need_no_registration(engine):
    for by, of, expected in ((min, max, 6), (max, min, 2), (sum, len, 3), (len, sum, 10), (any, all, True)):
        run = made(engine, range(10), map_function=by, reduce_function=of, chunks=3)
        assert finished(engine, run) == expected, (by, of)


def test_two_runs_of_one_name_do_not_meet(engine):
    one, other = made(engine, [1, 2, 3]), made(engine, [40])
    one.map()
    other.map()
    work_off(engine)
    assert (one.result(), other.result()) == (6, 40)


def test_a_run_is_looked_at_and_waited_for_from_elsewhere(engine):
    run = made(engine, range(4), chunks=2)
    elsewhere = MapReduce.open(run.id, engine=engine)
    assert elsewhere.progress() == Progress(0, 2, "collecting")
    elsewhere.add_items([10])
    elsewhere.map()
    work_off(engine)
    assert elsewhere.reduce() == run.reduce() == 16


def test_on_several_partitions_each_run_finds_its_own(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=5)
    runs = [made(engine, range(number, 20), chunks=7) for number in range(6)]
    assert [worked(engine, run) for run in runs] == [sum(range(number, 20)) for number in range(6)]
    engine.client.close()


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers() | st.text(max_size=5) | st.none(), max_size=9), max_size=4), st.integers(1, 12))
def test_any_items_added_in_any_portions_come_back_in_order(engine, portions, chunks):
    run = made(engine, map_function=handlers.same, reduce_function=handlers.joined, chunks=chunks)
    for portion in portions:
        run.add_items(portion)
    assert finished(engine, run) == [item for portion in portions for item in portion]


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 30))
def test_chunks_cover_every_item_once_whatever_the_pages(sizes, chunks):
    plan = Plan({str(page): size for page, size in enumerate(sizes)})
    assert plan.items == sum(sizes)
    chunks = min(chunks, plan.items)
    covered = [
        (cut.page, number)
        for chunk in range(chunks)
        for cut in plan.cuts(*bounds(chunk, chunks, plan.items))
        for number in range(cut.start, cut.stop)
    ]
    assert covered == [(str(page), number) for page, size in enumerate(sizes) for number in range(size)]
    shares = [stop - start for start, stop in (bounds(chunk, chunks, plan.items) for chunk in range(chunks))]
    assert not shares or max(shares) - min(shares) <= 1
