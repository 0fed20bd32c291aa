"""Subscriptions to sharded channels on one server, which notice when their connection is half open."""

import time
from collections.abc import Iterable
from typing import Any

import redis

from .client import CONNECT_TIMEOUT, build_options

PROBE = 5.0  # seconds of silence after which a server is asked for a sign of life
DEADLINE = 3.0  # seconds it may take for that; a half-open connection never gives any


class NodeConnection:
    """The subscriptions on one server. Every method raises a RedisError or OSError when the connection is broken; it is
    then of no more use."""

    def __init__(self, server: redis.Redis) -> None:
        pool = server.connection_pool
        given = {name: value for name, value in pool.connection_kwargs.items() if "maint_notifications" not in name}
        # RESP2 and bytes: messages and signs of life then come in one shape.
        mine = {"protocol": 2, "decode_responses": False, "health_check_interval": 0, "socket_timeout": DEADLINE}
        safe = {"socket_connect_timeout": CONNECT_TIMEOUT, "retry": build_options()["retry"]}
        self._connection: Any = pool.connection_class(**given | mine | safe)
        self.channels: set[str] = set()
        self._unconfirmed: set[str] = set()
        self._sign = self._asked = 0.0  # when anything came last; when it was asked for one since, or 0

    def open(self) -> Any:
        """Connect; return the socket."""
        self._connection.connect()
        self._sign = time.monotonic()
        return self._connection._sock

    @property
    def is_ready(self) -> bool:
        """Whether the server has confirmed all subscriptions."""
        return not self._unconfirmed

    def subscribe(self, channels: Iterable[str]) -> None:
        """Subscribe to exactly these channels. Of a cluster each has a slot, and so a command, of its own."""
        wanted = set(channels)
        added, removed = wanted - self.channels, self.channels - wanted
        words = [("SSUBSCRIBE", name) for name in sorted(added)] + [("SUNSUBSCRIBE", name) for name in sorted(removed)]
        if words:
            self._connection.send_packed_command(self._connection.pack_commands(words), check_health=False)
            self._asked = self._asked or time.monotonic()
        self.channels = wanted
        self._unconfirmed = (self._unconfirmed | added) & wanted

    def read(self, timeout: float = 0.0) -> list[tuple[str, bytes]]:
        """Wait for ``timeout`` seconds at most; return the messages that have come, as channel and text."""
        found = []
        while self._connection.can_read(timeout=timeout):
            kind, *rest = self._connection.read_response()
            self._sign, self._asked, timeout = time.monotonic(), 0.0, 0.0
            if kind == b"smessage":
                found.append((rest[0].decode(), rest[1]))
            elif kind == b"ssubscribe":
                self._unconfirmed.discard(rest[0].decode())
            elif kind == b"sunsubscribe" and rest[0].decode() in self.channels:
                raise redis.ConnectionError("the slot of a subscription has moved to another server")
        return found

    def probe(self) -> None:
        """Ask a silent server for a sign of life; raise when it gives none."""
        now = time.monotonic()
        if self._asked and now - self._asked > DEADLINE:
            raise redis.TimeoutError("the connection of a subscription gives no sign of life")
        if not self._asked and now - self._sign >= PROBE:
            self._connection.send_command("PING", check_health=False)
            self._asked = now

    def close(self) -> None:
        self._connection.disconnect()
