"""Connects the cache (django-redis) to a cluster, or to the master that Sentinels watch, with the engine's clients."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Any

from django_redis.client.default import DefaultClient
from django_redis.exceptions import ConnectionInterrupted

from machines.engine.connection.client import connect
from machines.engine.errors import EngineUnavailable

_making = threading.Lock()
_made: dict[str, Any] = {}  # URL -> client; Django makes a cache for each request, all share one client


class ConnectionFactory:
    """Makes one client for each URL of this process."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    def connect(self, url: str) -> Any:
        """Return the client of a URL. A cluster that does not answer raises ConnectionInterrupted."""
        with _making:
            if url not in _made:
                _made[url] = self._make(url)
            return _made[url]

    def disconnect(self, connection: Any) -> None:
        """Keep the client: others use it."""

    def _make(self, url: str) -> Any:
        try:
            return connect(
                url,
                decode_responses=False,
                socket_timeout=self._options["SOCKET_TIMEOUT"],
                socket_connect_timeout=self._options["SOCKET_CONNECT_TIMEOUT"],
                **self._options["CONNECTION_POOL_KWARGS"],
            )
        except EngineUnavailable as error:
            raise ConnectionInterrupted(connection=None) from error


class CacheClient(DefaultClient):
    """Sends a call for each key, since keys of one call may lie on several nodes of a cluster."""

    def __init__(self, server: str, params: dict[str, Any], backend: Any) -> None:
        super().__init__([server], params, backend)  # a list: the commas of a URL separate seeds, not servers

    def get_many(self, keys: Collection[str], version: int | None = None, client: Any = None) -> dict[str, Any]:
        found = {key: self.get(key, version=version, client=client) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def set_many(self, data: dict[str, Any], *args: Any, **options: Any) -> None:
        for key, value in data.items():
            self.set(key, value, *args, **options)

    def delete_many(self, keys: Iterable[str], version: int | None = None, client: Any = None) -> int:
        return sum(self.delete(key, version=version, client=client) for key in keys)
