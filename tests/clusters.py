"""A cluster of the product's, which tells who serves what and fails over in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import redis

from machines.conf import server
from machines.conf.server import Node, ServerFailed
from machines.conf.server.cluster import poll


class Cluster(server.Cluster):
    def owner_of(self, slot: int) -> Node:
        """Return the primary that serves a slot, in the view of the first node that answers."""
        for first, last, (_, port, *_), *_ in self._ask(redis.Redis.execute_command, "CLUSTER SLOTS"):
            if first <= slot <= last:
                return self._node(port)
        raise ServerFailed(f"no node of the cluster serves the slot {slot}")

    def primary_nodes(self) -> list[Node]:
        """Return the primaries that serve slots, each once."""
        found = self._ask(redis.Redis.execute_command, "CLUSTER SLOTS")
        return list(dict.fromkeys(self._node(port) for _, _, (_, port, *_), *_ in found))

    def replicas_of(self, primary: Node) -> list[Node]:
        """Return the replicas of a primary that answer."""
        return [node for node in self.nodes if node.running and self._primary_port(node) == primary.port]

    def fail_over(self, primary: Node) -> Node:
        """Have the first replica take a primary's place in order; return the new primary when all know it."""
        (replica, *_) = self.replicas_of(primary)
        with replica.client() as client:
            client.execute_command("CLUSTER", "FAILOVER")
            poll(lambda: client.role()[0] == "master", f"{replica.address} did not take over")
        self.wait_settled()
        return replica

    def _node(self, port: int) -> Node:
        return next(node for node in self.nodes if node.port == port)

    def _ask(self, call: Callable[..., Any], *words: Any) -> Any:
        """Return the answer of the first node that gives one."""
        for node in self.nodes:
            if node.running:
                with contextlib.suppress(redis.RedisError, OSError), node.client() as client:
                    return call(client, *words)
        raise ServerFailed("no node of the cluster answers")

    def _primary_port(self, node: Node) -> int | None:
        """Return the port of the primary that a node follows, or None."""
        try:
            with node.client() as client:
                found = client.info("replication")
        except (redis.RedisError, OSError):
            return None
        return int(found["master_port"]) if found["role"] == "slave" else None
