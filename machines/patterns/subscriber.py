"""The connections of a subscriber: one to each server that has a channel of its topics, discarded at the first
error."""

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

import redis

from machines.engine.connection import subscription
from machines.engine.connection.client import Client

SLICE = 0.05  # seconds that one of several servers is listened to before the next


class Subscriber:
    """All connections of one subscription. Every method raises a RedisError or OSError when one is broken."""

    def __init__(self, client: Client, channels: Iterable[str]) -> None:
        self._nodes = [
            (subscription.NodeConnection(server), names) for server, names in _group_by_node(client, channels)
        ]
        self._heard: deque[tuple[str, bytes]] = deque()
        self._slice = subscription.PROBE if len(self._nodes) == 1 else SLICE

    def open(self) -> None:
        """Subscribe; on return every message published from now on is received."""
        for node, names in self._nodes:
            node.open()
            node.subscribe(names)
        while not all(node.is_ready for node, _ in self._nodes):
            self._listen(SLICE)

    def hear(self, timeout: float) -> tuple[str, bytes] | None:
        """Return channel and message; None after ``timeout`` seconds without one."""
        until = time.monotonic() + timeout
        while not self._heard:
            self._listen(min(self._slice, max(0.0, until - time.monotonic())))
            if not self._heard and time.monotonic() >= until:
                return None
        return self._heard.popleft()

    def close(self) -> None:
        for node, _ in self._nodes:
            node.close()

    def _listen(self, seconds: float) -> None:
        """Listen to each server in turn; behind one that had a message, without waiting for the others."""
        for node, _ in self._nodes:
            found = node.read(seconds)
            self._heard.extend(found)
            seconds = 0.0 if found else seconds
            node.probe()


def _group_by_node(client: Client, channels: Iterable[str]) -> list[tuple[redis.Redis, list[str]]]:
    if not isinstance(client, redis.RedisCluster):
        return [(client, list(channels))]
    placed: dict[Any, list[str]] = defaultdict(list)
    for channel in channels:
        placed[client.get_node_from_key(channel)].append(channel)  # type: ignore[no-untyped-call]
    return [(client.get_redis_connection(node), names) for node, names in placed.items()]
