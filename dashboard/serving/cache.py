"""Connects the cache (django-redis) to a cluster, or to the master that Sentinels watch, with the engine's clients.

``get_shared_cache`` is a cache that all processes of an installation share: what must count once is remembered there.
It is Django's cache where that is on Redis. A project may keep its cache in the memory of each process, in files, or
nowhere; there, the engine's Redis is used, under the prefix that cache and sessions have on Signalbox's own site.
"""

import json
import threading
from collections.abc import Collection, Iterable
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django_redis.client.default import DefaultClient
from django_redis.exceptions import ConnectionInterrupted

from dashboard.site.stores import web_prefix
from machines.connections import get_engine
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


ON_REDIS = ("django_redis.", "django.core.cache.backends.redis.")


class EngineCache:
    """The few methods of Django's cache that are needed here; values are JSON, times seconds."""

    def add(self, name: str, value: Any, seconds: int) -> bool:
        """Set a value unless there is one; return whether it was set."""
        return bool(get_engine().client.set(_make_key(name), json.dumps(value), nx=True, ex=seconds))

    def get(self, name: str) -> Any:
        text = get_engine().client.get(_make_key(name))
        return None if text is None else json.loads(text)

    def set(self, name: str, value: Any, seconds: int) -> None:
        get_engine().client.set(_make_key(name), json.dumps(value), ex=seconds)

    def delete(self, name: str) -> None:
        get_engine().client.delete(_make_key(name))


def get_shared_cache() -> Any:
    """Return Django's default cache, or one on the engine's Redis."""
    backend = settings.CACHES.get("default", {}).get("BACKEND", "")
    return cache if backend.startswith(ON_REDIS) else _engine_cache


def _make_key(name: str) -> str:
    return f"{web_prefix(get_engine().keys.prefix)}:{name}"


_engine_cache = EngineCache()
