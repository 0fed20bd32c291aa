"""Makes the hub's asyncio clients, and lists the servers that send notifications: one, or every primary of a
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from dashboard.live.limits import Limits
from machines.engine.connection.client import build_options

Client = Redis | RedisCluster


def client(url: str, limits: Limits, **more: Any) -> Client:
    """Never tries twice by itself: whatever fails ends the link it belongs to."""
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
    if "+cluster" in urlsplit(url).scheme:
        return RedisCluster.from_url(url.replace("+cluster", "", 1), **settings)
    return Redis.from_url(url, **settings)


async def servers(client: Client, url: str) -> Mapping[str, str]:
    """Name -> URL of each server that may ring."""
    if not isinstance(client, RedisCluster):
        return {"": url}
    await client.initialize()
    return {node.name: _at(url, node.host, node.port) for node in client.get_primaries()}


def server_of(client: Client, key: str) -> str:
    """The name of the server that holds the key."""
    return client.get_node_from_key(key).name if isinstance(client, RedisCluster) else ""


def _at(url: str, host: str, port: int) -> str:
    """The same credentials and scheme, at one node of the cluster."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return parts._replace(scheme=parts.scheme.replace("+cluster", ""), netloc=f"{user}{at}{place}").geturl()
