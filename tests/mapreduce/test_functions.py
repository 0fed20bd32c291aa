"""Only registered functions are run, and only their names go to Redis."""

from __future__ import annotations

import math

import pytest

from machines.engine.errors import BadInput
from machines.mapreduce import FunctionError, MapReduce, UnregisteredFunction
from machines.mapreduce.run import Functions
from machines.mapreduce.store import CHUNK, RUN

from .app import handlers
from .builders import counts, made, ready, work_off


@pytest.mark.parametrize("function", [lambda items: 0, math.fsum, "math.fsum", "os.system"])
def test_what_is_not_registered_is_refused_before_anything_happens(engine, function):
    with pytest.raises(UnregisteredFunction, match="registered"):
        MapReduce("totals", map_function=function, engine=engine)
    with pytest.raises(UnregisteredFunction, match="registered"):
        MapReduce("totals", reduce_function=function, engine=engine)
    assert engine.machines() == {}


def test_the_refusal_says_what_to_do(engine):
    with pytest.raises(UnregisteredFunction, match="define it with @mapper in the handlers.py of an installed app"):
        MapReduce("totals", map_function=lambda items: 0, engine=engine)


def test_a_function_goes_by_its_name(engine):
    run = made(engine, [1], map_function=handlers.same, reduce_function="joined")
    data = engine.get(RUN, run.id).data
    assert (data["map"], data["reduce"]) == ("same", "joined")


def test_a_name_in_redis_that_is_a_path_is_imported_by_nobody(engine):
    run = made(engine, [1])
    engine.force(RUN, run.id, "collecting", data={"map": "os.getpid"}, actor="mallory", reason="to see what happens")
    run.map()
    work_off(engine)
    assert engine.queues(CHUNK)["map"]["delayed"] == 1


def test_a_worker_without_the_function_leaves_its_jobs_to_others(engine):
    run = made(engine, [1], map_function=handlers.same)
    engine.force(RUN, run.id, "collecting", data={"map": "of_the_next_release"}, actor="op", reason="a new release")
    run.map()
    work_off(engine)
    assert counts(engine, CHUNK) == {"waiting": 1}
    (job,) = engine.jobs(CHUNK, "map", place="delayed")
    assert job.attempt == 0
    assert ready(engine, CHUNK, "map") == 0


@pytest.mark.parametrize(
    ("name", "chunks"), [("", 1), ("a b", 1), (7, 1), ("a" * 65, 1), ("a", 0), ("a", 501), ("a", True)]
)
def test_a_run_that_cannot_be_is_refused(engine, name, chunks):
    with pytest.raises(BadInput):
        MapReduce(name, chunks=chunks, engine=engine)


@pytest.mark.pure
def test_a_name_stands_for_one_function():
    functions = Functions("mapper")

    @functions.register
    def shared(items):
        return items

    assert functions.register("other")(shared) is shared
    assert functions.register(shared) is shared
    with pytest.raises(FunctionError, match="two functions are called 'shared'"):
        functions.register("shared")(len)
    with pytest.raises(FunctionError, match=r'write @mapper\("name"\)'):
        functions.register(lambda items: 0)


@pytest.mark.pure
def test_a_coroutine_is_refused():
    async def later(items):
        return items

    with pytest.raises(FunctionError, match="called, not awaited"):
        Functions("mapper").register(later)
