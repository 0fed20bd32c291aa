"""Export, import and growth on a cluster of real servers."""

from __future__ import annotations

import secrets

import pytest

from machines.engine import Engine
from machines.engine.keys import choose_partition
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.connection import clusters

from .worlds import describe, export, fill, read


@pytest.fixture
def engine(nodes):
    engine = Engine.from_url(clusters.url_of(nodes), prefix=f"t{secrets.token_hex(4)}:")
    yield engine
    engine.client.close()


def test_a_machine_grows_over_the_nodes_and_goes_into_a_file_and_back(engine, nodes, tmp_path) -> None:
    ids = fill(engine, 30)
    before = describe(engine, ids)
    report = Repartition(engine.client, engine.keys, "order", 8, settle=0).run()
    assert report.finished
    fresh = Engine.from_url(clusters.url_of(nodes), prefix=engine.keys.prefix)
    assert describe(fresh, ids) == before
    for id in ids:
        key = fresh.keys.partition("order", choose_partition(id, 8)).instance(id)
        assert fresh.client.exists(key) == 1
    export(fresh, tmp_path / "f")
    other = Engine.from_url(clusters.url_of(nodes), prefix=f"{engine.keys.prefix}other:")
    assert read(other, tmp_path / "f", partitions=3).problems == []
    assert describe(other, ids) == before
    for one in (fresh, other):
        one.client.close()
