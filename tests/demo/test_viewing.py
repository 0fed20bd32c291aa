"""The demo's map-reduce: who watched what for how long, added up by all workers; over runs make room."""

from random import Random

import pytest

from dashboard.demo import traffic
from dashboard.demo.examples.handlers import add_up, minutes_watched
from dashboard.demo.traffic import Traffic, Viewing
from machines.catalog import builtin_machines
from machines.mapreduce import MapReduce
from machines.mapreduce.store import CHUNK, RUN
from machines.worker.registry import discover
from tests.worker.builders import drain

SERVICES = ("ABC", "HBO")


@pytest.fixture
def figures(engine, monkeypatch):
    monkeypatch.setattr(traffic, "VIEWS", 50)
    monkeypatch.setattr(traffic, "CHUNKS", 4)
    for name in ("map_reduce_chunk", "map_reduce"):
        builtin_machines.publish(engine, name)
    return Viewing(engine, Random(1), lambda random: f"ATV-{random.randrange(9)}", SERVICES)


def runs(engine, state):
    return engine.find(RUN, state=state).instances


def test_a_run_is_split_mapped_and_added_up(engine, figures):
    figures.move()
    (begun,) = runs(engine, "mapping")
    assert begun.data["items"] == 50
    drain(engine, discover())
    (done,) = runs(engine, "done")
    result = MapReduce.open(done.id, engine=engine).result()
    assert set(result) == set(SERVICES)
    assert list(result.values()) == sorted(result.values(), reverse=True)
    assert 50 <= sum(result.values()) <= 50 * traffic.LONGEST_VIEWING
    assert sorted(done.data["finished"]) == [0, 1, 2, 3]


def test_while_the_workers_are_away_runs_do_not_pile_up(engine, figures):
    for _ in range(3):
        figures.move()
    assert len(runs(engine, "mapping")) == 1


def test_a_run_that_was_looked_at_long_enough_goes_with_all_it_had(engine, figures, monkeypatch):
    figures.move()
    drain(engine, discover())
    monkeypatch.setattr(traffic, "RUN_KEPT", 0)
    figures.move()
    assert [len(runs(engine, state)) for state in ("done", "removing", "mapping")] == [0, 1, 1]
    drain(engine, discover())
    assert engine.live(RUN).total == 1
    assert engine.live(CHUNK).total == 4


def test_the_traffic_begins_a_run_now_and_then(engine, figures):
    story = Traffic(engine, 1)
    for _ in range(traffic.VIEWING_EVERY):
        story.beat()
    (begun,) = runs(engine, "mapping")
    assert begun.data["items"] == 50


def test_what_the_functions_give():
    parts = [minutes_watched([["TV-1", "ABC", 5], ["TV-2", "HBO", 7]]), minutes_watched([["TV-1", "ABC", 1]]), {}]
    assert add_up(parts) == {"HBO": 7, "ABC": 6}
    assert list(add_up(parts)) == ["HBO", "ABC"]
