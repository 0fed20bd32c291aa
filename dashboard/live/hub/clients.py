"""Makes the hub's asyncio clients: of one server, of the master that Sentinels watch, or of one node of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from dashboard.live.limits import Limits
from machines.engine.connection.client import build_options
from machines.engine.connection.redis_url import RedisURL, Seed, read_url


def connect(url: str, limits: Limits, node: Seed | None = None, **more: Any) -> Redis:
    """Make a client of a URL; of a cluster, of one ``node``. It never tries twice by itself: whatever fails ends the
    link it belongs to."""
    settings = build_options(
        retry=Retry(NoBackoff(), 0),
        socket_timeout=limits.deadline,
        socket_connect_timeout=limits.deadline,
        health_check_interval=0,
        max_connections=4,
        **more,
    )
    if not url.startswith("unix"):
        settings["socket_keepalive"] = True
    place = read_url(url)
    if node is not None:
        return Redis(host=node[0], port=node[1], **settings | place.account_options)
    if place.kind == "sentinel":
        return _follow_master(place, settings)
    return Redis.from_url(url, **settings)


def _follow_master(place: RedisURL, settings: Mapping[str, Any]) -> Redis:
    asked = {name: settings[name] for name in ("socket_timeout", "socket_connect_timeout", "socket_keepalive")}
    make: Any = Sentinel
    sentinel = make(list(place.seeds), sentinel_kwargs=asked | {"decode_responses": True} | place.watcher_options)
    client: Redis = sentinel.master_for(place.service, **dict(settings) | place.account_options)
    return client
