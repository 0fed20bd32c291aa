"""The supervised cluster: it starts whole, loses a node, and comes back with its data."""

from __future__ import annotations

import pytest

from machines.conf.server import FolderInUse
from tests.clusters import Cluster

pytestmark = pytest.mark.cluster


def test_it_survives_a_crash_and_a_failover_and_keeps_its_data(tmp_path, program_of_this_run):
    options = {"password": "a-password", "program": program_of_this_run, "persistent": True}
    with Cluster(tmp_path, **options) as cluster:
        assert cluster.url.startswith("redis+cluster://:a-password@127.0.0.1:")
        assert len(cluster.url.split(",")) == len(cluster.nodes) == 6
        with pytest.raises(FolderInUse):
            Cluster(tmp_path, **options).start()
        first = cluster.owner_of(0)
        (replica,) = cluster.replicas_of(first)
        with first.client() as client:
            assert client.set("{06S}", "kept")  # slot 0
            assert client.wait(1, 60_000) == 1
        first.kill()
        cluster.wait_settled()
        assert cluster.owner_of(0) is replica
        first.revive()
        cluster.wait_settled()
        assert cluster.fail_over(replica) is first
        assert len(cluster.primary_nodes()) == 3
        ports = [node.port for node in cluster.nodes]
    assert not any(node.running for node in cluster.nodes)
    with Cluster(tmp_path, **options) as again:
        assert [node.port for node in again.nodes] == ports
        with again.owner_of(0).client() as client:
            assert client.get("{06S}") == "kept"
