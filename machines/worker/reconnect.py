"""Closes stale connections when Redis does not answer."""

from __future__ import annotations

import redis

from machines.engine import Engine


def forget_connections(engine: Engine) -> None:
    """Drop those nobody uses right now: they may lead to a server that is gone, or no longer takes writes, and each
    that is tried would cost its whole timeout, one after the other."""
    if isinstance(engine.client, redis.Redis):
        engine.client.connection_pool.disconnect(inuse_connections=False)
