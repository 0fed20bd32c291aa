"""A worker whose queues lie on several servers."""

from __future__ import annotations

import pytest

from tests.engine.connection import clusters
from tests.installation.processes import eventually

from . import builders
from .builders import Running, registry_of


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, partitions=6) as engine:
        yield engine


def test_it_takes_from_all_of_them_has_a_row_and_obeys(engine):
    engine.publish(builders.errand())
    with Running(engine, registry_of(run=print), id="w1") as worker:
        eventually(engine.workers, "it is listed")
        for number in range(30):
            engine.create("errand", f"e{number}")
        engine.enqueue("errand", "run", queue="run")
        eventually(lambda: engine.counts("errand")["done"] == 30, "all are done")
        eventually(lambda: worker.counters.done == 31, "the bare one, too")
        engine.direct("w1", "quiet", actor="alice", reason="a deploy")
        eventually(lambda: worker.status == "quiet", "it has obeyed")
    assert engine.workers() == []


def test_it_hears_bells_of_all_nodes_and_fires_timers_without_looking(nodes, prefix):
    with clusters.engine_on(nodes, prefix, partitions=9) as engine:
        engine.publish(builders.errand())
        engine.publish({"id": "lamp", "initial": "On", "states": {"On": {"after": {"200ms": "Off"}}, "Off": {}}})
        with Running(engine, registry_of(run=print), block=3600, rescan=3600, tick=3600, sweep=3600) as worker:
            eventually(lambda: worker.served_queues.served and worker._listener.is_settled, "it hears the bells")
            for number in range(30):
                engine.create("errand", f"e{number}")
                engine.create("lamp", f"l{number}")
            eventually(lambda: engine.counts("errand")["done"] == 30, "all are done")
            eventually(lambda: engine.counts("lamp")["Off"] == 30, "all lamps are off")
