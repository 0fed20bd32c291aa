"""Items are added page by page, all of a call or none, and never twice."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import pytest

from machines.engine.errors import BadInput, BadPayload, EngineUnavailable
from machines.mapreduce import AlreadyStarted
from machines.mapreduce import run as run_module
from machines.mapreduce.run import Run
from machines.mapreduce.store import GROUP, MAX_ITEM, PAGE_BYTES, PAGE_ITEMS, RUN, Store, split_pages
from tests.cases import for_each
from tests.engine.dumps import keys_left

from .app import handlers
from .builders import made, work_off, worked

MILLION = 1_000_000


def kept(engine, run):
    """Items on the pages in Redis, complete or not."""
    index = engine.client.hgetall(engine.keys.partition(RUN).index(run.id))
    return sum(int(count) for name, count in index.items() if ":" in name)


@for_each("size", [1, 300, 3_000, 100_000, MAX_ITEM - 2])
def test_a_page_is_bounded_by_number_and_by_size(size):
    items = ["x" * size] * (3 if size > PAGE_BYTES else 2_500 if size < 1_000 else 100)
    pages = list(split_pages(items))
    assert [item for page in pages for item in json.loads(page.text)] == items
    assert all(page.count == len(json.loads(page.text)) <= PAGE_ITEMS for page in pages)
    assert all(len(page.text) <= PAGE_BYTES + 1 or page.count == 1 for page in pages)


def test_a_million_items_are_mapped_and_no_process_holds_more_than_a_page(engine):
    run = made(engine)
    ahead = []

    def items():
        for number in range(MILLION):
            if number % 49_999 == 0:
                ahead.append(number - kept(engine, run))
            yield number

    assert run.add_items(items()) == MILLION
    assert len(ahead) == 21
    assert max(ahead) <= PAGE_ITEMS + GROUP
    assert worked(engine, run) == sum(range(MILLION))


def test_what_adding_takes_of_memory_does_not_grow_with_the_items(engine):
    run = made(engine, range(10))
    tracemalloc.start()
    run.add_items({"number": number, "text": "x" * 50} for number in range(50_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000  # bytes: together they are above 20 MB


def test_an_iterable_that_raises_adds_nothing(engine):
    run = made(engine, [1])

    def broken():
        yield from range(2_500)
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="gone"):
        run.add_items(broken())
    assert kept(engine, run) == 1
    assert engine.get(RUN, run.id).data["items"] == 1
    assert worked(engine, run) == 1


def test_pages_of_a_process_that_died_while_adding_do_not_count(engine):
    run = made(engine, [1, 2])
    store = Store(engine, run.id)
    for number, page in enumerate(split_pages(range(1_500))):
        store.put(store.adder() if number == 0 else 2, number, page)
    assert worked(engine, run) == 3


def test_a_call_whose_answer_was_lost_is_said_again_and_counts_once(engine, monkeypatch):
    """Each write reaches Redis, and the answer to every other one does not reach its caller."""
    run = made(engine, [1])
    said = Counter()

    def losing(name, function):
        def call(*args, **kwargs):
            answer = function(*args, **kwargs)
            said[name] += 1
            if said[name] % 2:
                raise EngineUnavailable("the answer was lost")
            return answer

        return call

    monkeypatch.setattr(run_module, "TRY_AGAIN", 0)
    for name in ("put", "complete"):
        monkeypatch.setattr(Store, name, losing(name, getattr(Store, name)))
    monkeypatch.setattr(engine, "fire", losing("fire", engine.fire))
    run.add_items(range(2_000))
    assert engine.get(RUN, run.id).data["items"] == 2_001
    run.map()
    assert said == {"put": 4, "complete": 2, "fire": 4}
    monkeypatch.undo()
    work_off(engine)
    assert run.result() == sum(range(2_000)) + 1


def test_items_of_two_calls_at_a_time_stay_together(engine):
    run = made(engine, map_function=handlers.same, reduce_function=handlers.joined, chunks=3)

    def items():
        yield from range(1_500)
        run.add_items(["another", "process"])
        yield from range(1_500, 3_000)

    run.add_items(items())
    run.map()
    work_off(engine)
    assert run.result() == [*range(3_000), "another", "process"]


def test_items_that_come_too_late_are_refused(engine):
    run = made(engine, [1])
    run.map()
    run.map()
    with pytest.raises(AlreadyStarted, match="is mapping: it takes no more items"):
        run.add_items([2])
    work_off(engine)
    assert run.result() == 1


def test_what_is_complete_after_the_split_has_begun_changes_no_chunk(engine):
    """The chunks of a second look have to be those of the first one."""
    run = made(engine, range(10), map_function=handlers.same, reduce_function=handlers.joined, chunks=3)
    run.map()
    store = Store(engine, run.id)
    store.freeze()
    late = store.adder()
    (page,) = split_pages(["late"])
    store.put(late, 0, page)
    store.complete(late, 1)
    work_off(engine)
    assert run.result() == list(range(10))


def test_a_call_that_adds_while_the_run_is_started_is_told(engine):
    run = made(engine, [1])

    def items():
        yield 2
        run.map()

    with pytest.raises(AlreadyStarted, match="may or may not be part of it"):
        run.add_items(items())


def test_what_is_added_to_a_suspended_run_counts(engine):
    run = made(engine, [1])
    engine.suspend(RUN, run.id, actor="op", reason="a test")
    assert run.add_items([2, 3]) == 2
    engine.resume(RUN, run.id, actor="op", reason="a test")
    assert worked(engine, run) == 6
    assert engine.get(RUN, run.id).data["items"] == 3


@pytest.mark.parametrize("items", ["text", b"bytes", {"a": 1}])
def test_a_text_is_no_list_of_items(engine, items):
    with pytest.raises(BadInput, match="come as a list"):
        made(engine).add_items(items)


@pytest.mark.parametrize("item", [float("nan"), object(), {1, 2}, "x" * MAX_ITEM])
def test_an_item_that_cannot_be_kept_is_named(engine, item):
    run = made(engine, [1])
    with pytest.raises(BadPayload, match="item 1030 "):
        run.add_items([0] * 1030 + [item])
    assert kept(engine, run) == 1


def test_everything_expires_by_itself_even_if_nobody_removes_it(engine):
    run = made(engine, [1, 2], chunks=2)
    keys = engine.keys.partition(RUN)
    names = [keys.pages(run.id), keys.index(run.id), keys.parts(run.id), keys.result(run.id)]
    assert all(31 * 86_400 < engine.client.ttl(name) < 33 * 86_400 for name in names[:2])
    worked(engine, run)
    assert all(86_400 < engine.client.ttl(name) < 2 * 86_400 for name in names)


def test_a_day_after_its_end_nothing_is_left_of_a_run(engine):
    run = made(engine, range(10), chunks=3)
    worked(engine, run)
    tomorrow = engine.live(RUN).now + 86_400_001
    engine.tick(RUN, now=tomorrow)
    assert run.progress().state == "removing"
    (taken,) = engine.take(RUN, "remove", "w", now=tomorrow)
    engine.hand_back(taken)
    work_off(engine)
    assert not [key for key in keys_left(engine) if run.id in key and ":k:" not in key]
    with pytest.raises(Exception, match="has no instance"):
        Run(run.id, engine).progress()
