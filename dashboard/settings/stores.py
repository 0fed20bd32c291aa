"""Settings of the SQL database and of the cache, which also holds sessions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

from . import home, private_files

REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")
CACHE_SCHEMES = ("redis", "rediss", "unix")
DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")

# Writers wait their turn instead of failing with "database is locked"; readers never wait for a writer.
SQLITE_OPTIONS = {
    "timeout": 20,  # seconds
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


def database(url: str, folder: Path) -> dict[str, Any]:
    """``DATABASES["default"]`` for ``url``; none means SQLite in ``folder``, which is made then."""
    if not url:
        file = home.make(folder) / "signalbox.sqlite3"
        private_files.database(file)
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
    if config["ENGINE"].endswith("sqlite3"):
        if os.path.isabs(config["NAME"]):  # and not in memory, or a URI of SQLite's own
            private_files.database(Path(config["NAME"]))
        config["OPTIONS"] = SQLITE_OPTIONS | config.get("OPTIONS", {})
    return config


def cache_url(given: str, redis_url: str) -> str:
    """The cache's server: its own, or the engine's when that is not a cluster."""
    if given:
        return given
    if urlsplit(redis_url).scheme not in CACHE_SCHEMES:
        raise ImproperlyConfigured(
            "REDIS_URL names a cluster, which cannot hold cache and sessions; set CACHE_URL to a single Redis for them"
        )
    return redis_url


def web_prefix(prefix: str) -> str:
    """Cache and session keys, beside the engine's and never among them: ``sb:`` -> ``sb-web``."""
    return f"{prefix.rstrip(':')}-web"


def caches(url: str, prefix: str) -> dict[str, Any]:
    """``CACHES`` on django-redis. One quick second try: a page must say "Redis is down" soon, not after a minute."""
    return {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": url,
            "KEY_PREFIX": web_prefix(prefix),
            "TIMEOUT": 300,  # seconds
            "OPTIONS": {
                # Not pickle: write access to Redis must not allow to run code here.
                "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                "SOCKET_CONNECT_TIMEOUT": 2,  # seconds
                "SOCKET_TIMEOUT": 5,  # seconds
                "CONNECTION_POOL_KWARGS": {"retry": Retry(NoBackoff(), 1), "max_connections": 200},
            },
        }
    }
