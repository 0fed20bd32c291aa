"""The connections of a subscriber: one to each server that has a channel of its topics, discarded at the first
error."""

import time
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

import redis
from redis import exceptions

from machines.engine.connection.client import CONNECT_TIMEOUT, Client, build_options

PROBE = 5.0  # seconds of silence after which a server is asked for a sign of life
DEADLINE = 3.0  # seconds it may take for that; a half-open connection never gives any
SLICE = 0.05  # seconds that one of several servers is listened to before the next


class ServerSubscriber:
    """One connection to one server. Every method raises a RedisError or OSError when the connection is broken."""

    def __init__(self, server: redis.Redis, channels: list[str]) -> None:
        given = server.connection_pool.connection_kwargs
        given = {name: value for name, value in given.items() if "maint_notifications" not in name}  # those take RESP3
        # RESP2 and bytes: messages and signs of life then come in one shape.
        mine = {"protocol": 2, "decode_responses": False, "health_check_interval": 0, "socket_timeout": DEADLINE}
        safe = {name: build_options()[name] for name in ("retry",)} | {"socket_connect_timeout": CONNECT_TIMEOUT}
        pool = redis.ConnectionPool(
            connection_class=server.connection_pool.connection_class, max_connections=1, **given | mine | safe
        )
        self._client = redis.Redis(connection_pool=pool)
        self._pubsub: Any = self._client.pubsub()  # type: ignore[no-untyped-call]
        self._channels = channels
        self._heard: deque[tuple[str, bytes]] = deque()
        self._sign = self._asked = 0.0  # when anything came last; when it was asked for one since, or 0

    def open(self) -> None:
        """Subscribe; on return every message published from now on is received."""
        for channel in self._channels:  # of a cluster, each has a slot of its own
            self._pubsub.ssubscribe(channel)
        waited, missing = time.monotonic() + DEADLINE, set(self._channels)
        while missing:
            found = self._next(waited - time.monotonic())
            if found is None:
                raise exceptions.TimeoutError("the server did not take the subscription in time")
            if found["type"] == "ssubscribe":
                missing.discard(found["channel"].decode())

    def hear(self, timeout: float) -> tuple[str, bytes] | None:
        """Return channel and message; None after ``timeout`` seconds without one."""
        until = time.monotonic() + timeout
        while not self._heard:
            self._next(min(max(0.0, until - time.monotonic()), PROBE))
            self._probe()
            if not self._heard and time.monotonic() >= until:
                return None
        return self._heard.popleft()

    def close(self) -> None:
        self._pubsub.close()
        self._client.close()

    def _next(self, timeout: float) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._pubsub.get_message(timeout=max(timeout, 0.0))
        if found is not None:
            self._sign, self._asked = time.monotonic(), 0.0
            if found["type"] == "smessage":
                self._heard.append((found["channel"].decode(), found["data"]))
            elif found["type"] == "sunsubscribe":  # its slot has moved to another server
                raise exceptions.ConnectionError("the server has let the subscription go")
        return found

    def _probe(self) -> None:
        now = time.monotonic()
        if self._asked and now - self._asked > DEADLINE:
            raise exceptions.TimeoutError("the subscriber's connection gives no sign of life")
        if not self._asked and now - self._sign > PROBE:
            self._pubsub.ping("there?")
            self._asked = now


class Subscriber:
    """All connections of one subscription. ``channels``: channel -> topic."""

    def __init__(self, client: Client, channels: Mapping[str, str]) -> None:
        self._subscribers = [ServerSubscriber(server, names) for server, names in _group_by_node(client, channels)]

    def open(self) -> None:
        for subscriber in self._subscribers:
            subscriber.open()

    def hear(self, timeout: float) -> tuple[str, bytes] | None:
        if len(self._subscribers) == 1:
            return self._subscribers[0].hear(timeout)
        until = time.monotonic() + timeout
        while True:
            for subscriber in self._subscribers:
                if found := subscriber.hear(min(SLICE, max(0.0, until - time.monotonic()))):
                    return found
            if time.monotonic() >= until:
                return None

    def close(self) -> None:
        for subscriber in self._subscribers:
            subscriber.close()


def _group_by_node(client: Client, channels: Mapping[str, str]) -> list[tuple[redis.Redis, list[str]]]:
    if not isinstance(client, redis.RedisCluster):
        return [(client, list(channels))]
    placed: dict[Any, list[str]] = defaultdict(list)
    for channel in channels:
        placed[client.get_node_from_key(channel)].append(channel)  # type: ignore[no-untyped-call]
    return [(client.get_redis_connection(node), names) for node, names in placed.items()]
