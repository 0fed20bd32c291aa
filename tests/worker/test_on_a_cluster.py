"""A worker whose queues lie on several servers."""

from __future__ import annotations

import os

import pytest

from machines.engine import Engine
from tests.conftest import program
from tests.engine.connection import clusters
from tests.installation.processes import eventually

from . import builders
from .builders import Running, registry_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def engine(tmp_path, redis_url):
    with clusters.running(tmp_path, program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))) as nodes:
        engine = Engine.from_url(f"redis+cluster://127.0.0.1:{nodes[0].port}", partitions=6)
        yield engine
        engine.client.close()


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
