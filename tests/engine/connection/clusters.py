"""Run a real cluster on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from machines.conf.server import Node
from machines.conf.server.cluster import free_ports
from machines.engine import Engine
from tests.clusters import Cluster

NODES = 3
NODE_TIMEOUT = 5.0  # seconds: nodes of a busy machine are silent for a while
READY_WITHIN = 60.0  # seconds

__all__ = ["NODES", "Cluster", "Node", "engine_on", "eventually", "free_ports", "running", "settled", "url_of"]


@contextlib.contextmanager
def running(folder: Path, program: str | None) -> Iterator[list[Node]]:
    """Three primaries that share the slots evenly, without replicas."""
    with Cluster(
        folder, primaries=NODES, replicas=0, program=program, node_timeout=NODE_TIMEOUT, full_coverage=True
    ) as cluster:
        yield cluster.nodes


def url_of(nodes: list[Node]) -> str:
    return f"redis+cluster://{nodes[0].address}"


@contextlib.contextmanager
def engine_on(nodes: list[Node], prefix: str, partitions: int, **options: Any) -> Iterator[Engine]:
    """An engine on the cluster; its keys are removed afterwards."""
    engine = Engine.from_url(url_of(nodes), prefix=prefix, partitions=partitions, **options)
    yield engine
    engine.client.close()
    remove(nodes, prefix)


def remove(nodes: list[Node], prefix: str) -> None:
    """Remove every key that starts with ``prefix`` from all primaries."""
    for node in nodes:
        with node.client() as client:
            if client.role()[0] == "master":
                for key in client.scan_iter(match=f"{prefix}*", count=1000):
                    client.unlink(key)


def settled(client: redis.Redis) -> bool:
    info = client.cluster("INFO")
    return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == NODES


def eventually(holds) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while True:
        with contextlib.suppress(redis.ConnectionError):
            if holds():
                return
        assert time.monotonic() < deadline, "the cluster never came up"
        time.sleep(0.05)
