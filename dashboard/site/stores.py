"""Settings of the SQL database, the cache and the sessions."""

import hashlib
import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

from machines.conf import extras
from machines.conf.project import SQLITE_OPTIONS
from machines.engine.connection import redis_url

from . import home

REDIS_SCHEMES = redis_url.SCHEMES
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")

SESSION_KEYS = "django.contrib.sessions.cache"  # how the names of sessions begin in a cache
SESSION_ENGINES = {"redis": "dashboard.serving.sessions", "sql": "django.contrib.sessions.backends.db"}


def database(url: str, folder: Path) -> dict[str, Any]:
    """Return ``DATABASES["default"]`` for ``url``; without one, SQLite in ``folder``, which is made then."""
    if not url:
        file = home.make(folder) / "signalbox.sqlite3"
        home.database(file)
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": file,
            "OPTIONS": dict(SQLITE_OPTIONS),
        }
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url, conn_health_checks=True))
    except (ValueError, dj_database_url.ParseError) as error:
        raise ImproperlyConfigured(f"DATABASE_URL does not fit: {error}") from None
    if not config.get("NAME"):
        raise ImproperlyConfigured("DATABASE_URL names no database; write it as postgres://user:password@host/name")
    if config["ENGINE"].endswith("postgresql") and (missing := extras.list_missing("postgres")):
        raise ImproperlyConfigured(extras.explain("DATABASE_URL with PostgreSQL", "postgres", missing))
    if config["ENGINE"].endswith("sqlite3"):
        if os.path.isabs(config["NAME"]):  # and not in memory, or a URI of SQLite's own
            home.database(Path(config["NAME"]))
        config["OPTIONS"] = SQLITE_OPTIONS | config.get("OPTIONS", {})
    return config


def is_cluster(url: str) -> bool:
    """Tell whether a Redis URL names a cluster."""
    return url.partition("://")[0].endswith("+cluster")


def session_engine(choice: str, cache_url: str) -> str:
    """Return ``SESSION_ENGINE`` for SIGNALBOX_SESSIONS. Without a choice sessions stay off a cluster: while a shard is
    away, the people whose sessions it holds could not see the others."""
    return SESSION_ENGINES[choice or ("sql" if is_cluster(cache_url) else "redis")]


def web_prefix(prefix: str) -> str:
    """Return the prefix of cache and session keys, beside the engine's keys and never among them: ``sb:`` ->
    ``sb-web``."""
    return f"{prefix.rstrip(':')}-web"


def make_cache_key(key: str, prefix: str, version: int) -> str:
    """Make the key in Redis of a cache key, as Django does. The name of a session is the cookie of its visitor: its
    digest stands in the key, since an account of a worker may list the names of keys, whatever it may read."""
    kind, found, name = key.partition(SESSION_KEYS)
    if found and not kind:
        key = SESSION_KEYS + hashlib.sha256(name.encode()).hexdigest()
    return f"{prefix}:{version}:{key}"


def caches(url: str, prefix: str) -> dict[str, Any]:
    """Return ``CACHES`` on django-redis, with one quick retry: a page must say "Redis is down" soon, not after a
    minute."""
    several = {
        "CONNECTION_FACTORY": "dashboard.serving.cache.ConnectionFactory",
        "CLIENT_CLASS": "dashboard.serving.cache.CacheClient",
    }
    return {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": url,
            "KEY_PREFIX": web_prefix(prefix),
            "KEY_FUNCTION": "dashboard.site.stores.make_cache_key",
            "TIMEOUT": 300,  # seconds
            "OPTIONS": {
                # Not pickle: write access to Redis must not allow to run code here.
                "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                "SOCKET_CONNECT_TIMEOUT": 2,  # seconds
                "SOCKET_TIMEOUT": 5,  # seconds
                "CONNECTION_POOL_KWARGS": {"retry": Retry(NoBackoff(), 1), "max_connections": 200},
                **(several if "+" in url.partition("://")[0] else {}),
            },
        }
    }
