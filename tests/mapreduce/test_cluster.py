"""On a real cluster a run, its chunks and its items lie where their hash slots are."""

from __future__ import annotations

import pytest

from tests.configuration import configure
from tests.engine.connection import clusters

from .app import handlers
from .builders import made, work_off


@pytest.fixture
def cluster(nodes, prefix, settings):
    """An engine on the cluster; the handlers of this process use it, too."""
    configure(settings, REDIS_URL=clusters.url_of(nodes))
    with clusters.engine_on(nodes, prefix, partitions=6) as engine:
        yield engine


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
