"""Every key of a test and all that is in it, to see that a call changed nothing at all.

The counters of refused events are left out: they are what a refusal leaves, and no part of any instance. So are the
moment of a partition's latest change, the number of the layout, which an engine notes when it loads the library, and
the ranges that ids are made from: a process takes the next one when it is time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from machines.engine import Engine

Dump = dict[bytes, tuple[object, int]]


def dump(engine: Engine) -> Dump:
    """Key -> its content and the ms at which it expires (-1: never)."""
    with raw(engine) as client:
        keys = sorted(client.scan_iter(match=f"{engine.keys.prefix}*", count=1000))
        found = dict(zip(keys, _contents(client, keys), strict=True))
    return {key: value for key, value in found.items() if value[0] is not None and not _is_aside(key)}


def _is_aside(key: bytes) -> bool:
    return key.endswith((b":refused", b":layout")) or b":ids:{ids}:" in key


@contextmanager
def unchanged(engine: Engine) -> Iterator[None]:
    """The block leaves every key as it is, and makes no new one."""
    silence(engine)
    before = dump(engine)
    yield
    after = dump(engine)
    assert {k for k in after if k not in before} == set(), "keys that are new"
    assert {k for k in before if k not in after} == set(), "keys that are gone"
    assert {k for k in before if before[k] != after[k]} == set(), "keys that differ"


@contextmanager
def restored(engine: Engine) -> Iterator[None]:
    """Put every key back as it was before the block, so that the next case finds the same."""
    with raw(engine) as client:
        keys = list(client.scan_iter(match=f"{engine.keys.prefix}*", count=1000))
        kept = [(key, client.dump(key), max(client.pexpiretime(key), 0)) for key in keys]
        yield
        with client.pipeline(transaction=False) as asked:
            asked.delete(*client.scan_iter(match=f"{engine.keys.prefix}*", count=1000))
            for key, content, ends in kept:
                if content is not None:
                    asked.restore(key, ends, content, absttl=True)
            asked.execute()


def silence(engine: Engine) -> None:
    """Take the pulse keys away: they go by themselves after 50 ms, at any moment of a test."""
    with raw(engine) as client:
        for key in client.scan_iter(match=f"{engine.keys.prefix}*:pulse"):
            client.delete(key)


def keys_left(engine: Engine) -> set[str]:
    """The keys below the prefix, without it; without the pulses, which go by themselves sooner or later, and without
    the counters of refused events and the ranges of ids."""
    prefix = engine.keys.prefix
    found = engine.client.scan_iter(match=f"{prefix}*", count=1000)
    return {key.removeprefix(prefix) for key in found if not key.endswith(":pulse") and not _is_aside(key.encode())}


def _contents(client: redis.Redis, keys: list[bytes]) -> list[tuple[object, int]]:
    """What each key holds, and when it expires.

    The DUMP; of a hash or a set its members, whose order in a dump changes while the server resizes its table.
    """
    with client.pipeline(transaction=False) as asked:
        for key in keys:
            asked.type(key)
        kinds = asked.execute()
        for key, kind in zip(keys, kinds, strict=True):
            {b"hash": asked.hgetall, b"set": asked.smembers}.get(kind, asked.dump)(key)
            asked.pexpiretime(key)
        found = asked.execute()
    for content in found[::2]:
        if isinstance(content, dict):
            content.pop(b"touched", None)
            for name in [name for name in content if re.fullmatch(rb"\d+:refused", name)]:
                del content[name]
    return [(content or None, ends) for content, ends in zip(found[::2], found[1::2], strict=True)]


@contextmanager
def raw(engine: Engine) -> Iterator[redis.Redis]:
    """A client that answers bytes, on the server of the engine."""
    pool = engine.client.connection_pool
    options = {**pool.connection_kwargs, "decode_responses": False}
    client = redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
    try:
        yield client
    finally:
        client.close()
        client.connection_pool.disconnect()
