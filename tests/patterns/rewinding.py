"""A server that comes back from an older file: all of a test's keys as they were, and none that came since."""

from __future__ import annotations

import redis

from machines.engine import Engine
from tests.engine.dumps import raw

File = dict[bytes, tuple[bytes, int]]


def older(engine: Engine) -> File:
    """What a file written now would hold."""
    with raw(engine) as client:
        return {key: (client.dump(key), max(0, client.pttl(key))) for key in _keys(client, engine)}


def rewind(engine: Engine, file: File) -> None:
    """The server died and read this file."""
    with raw(engine) as client:
        for key in _keys(client, engine):
            client.delete(key)
        for key, (content, ttl) in file.items():
            client.restore(key, ttl, content)


def _keys(client: redis.Redis, engine: Engine) -> list[bytes]:
    return [key for key in client.scan_iter(match=f"{engine.keys.prefix}*", count=1000) if not key.endswith(b":pulse")]
