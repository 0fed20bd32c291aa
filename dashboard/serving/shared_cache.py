"""A cache that all processes of an installation share: what must count once is remembered there.

It is Django's cache where that is on Redis. A project may keep its cache in the memory of each process, in files, or
nowhere; there, the engine's Redis is used, under the prefix that cache and sessions have on Signalbox's own site.
"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.cache import cache

from dashboard.site.stores import web_prefix
from machines.connections import get_engine

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
