"""On a real cluster a run, its chunks and its items lie where their hash slots are."""

from __future__ import annotations

import os

import pytest

from machines.engine import Engine
from tests.conftest import program
from tests.engine.connection import clusters

from .app import handlers
from .builders import made, work_off


@pytest.fixture
def cluster(tmp_path, prefix, settings):
    """An engine on a cluster of its own; the handlers of this process use it, too."""
    with clusters.running(tmp_path, program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))) as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        settings.REDIS_URL = url
        engine = Engine.from_url(url, prefix=prefix, partitions=6)
        yield engine
        engine.client.close()


def test_runs_on_a_cluster_end_as_on_a_single_server(cluster):
    runs = [
        made(cluster, range(number, 3_000), map_function=handlers.same, reduce_function=handlers.joined, chunks=7)
        for number in range(3)
    ]
    for run in runs:
        run.map()
    while work_off(cluster):
        cluster.tick()
    assert [run.result() for run in runs] == [list(range(number, 3_000)) for number in range(3)]
