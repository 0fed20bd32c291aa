"""Searches every key of the installation in Redis, also those of cache and sessions.

It reads all keys, some hundred in a round trip: minutes for ten million. Values are compared as bytes, so that they are
found in replies that Lua packed, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings

from machines.conf import conf
from machines.engine import Engine
from machines.engine.connection import client as connection
from machines.engine.connection import routing
from machines.engine.connection.redis_url import SCHEMES

PAGE = 300  # keys of one round trip
PART = 500  # members of one round trip

Entry = tuple[bytes, bytes]  # what names a member within its key; its content


@dataclass(frozen=True, slots=True)
class Place:
    """A key on one server. ``root``, ``suffix``: of a key of the engine, ``sb:{machine:0}`` and ``i:x``; else empty."""

    server: redis.Redis
    key: bytes
    kind: str
    root: str = ""
    suffix: str = ""

    @property
    def machine(self) -> str:
        return self.root.partition("{")[2].rpartition(":")[0]

    @property
    def instance(self) -> str:
        """The instance whose hash, history or held messages it is; else empty."""
        kind, _, id = self.suffix.partition(":")
        return id if kind in ("i", "h", "held") else ""

    @property
    def job(self) -> str:
        return self.suffix.removeprefix("job:") if self.suffix.startswith("job:") else ""

    def __str__(self) -> str:
        return self.key.decode(errors="replace")


def walk(engine: Engine) -> Iterator[tuple[Place, list[Entry]]]:
    """Read each key with its members. A collection of many members comes in several parts."""
    prefix = engine.keys.prefix
    named = re.compile(rf"({re.escape(prefix)}\{{[^}}]+\}}):(.*)", re.DOTALL)
    for server, pattern in _list_servers(engine):
        for keys in _read_pages(server, pattern):
            kinds = _pipe(server, [("TYPE", key) for key in keys])
            for key, kind in zip(keys, kinds, strict=True):
                found = named.fullmatch(key.decode(errors="surrogateescape"))
                root, suffix = found.groups() if found else ("", "")
                place = Place(server, key, _decode(kind), root, suffix)
                for part in READERS.get(place.kind, _read_none)(place):
                    yield place, part


def _list_servers(engine: Engine) -> Iterator[tuple[redis.Redis, str]]:
    """Yield each server that holds keys, with the pattern of those that are this installation's."""
    cache = settings.CACHES["default"]
    web, elsewhere = str(cache.get("KEY_PREFIX", "")), str(cache.get("LOCATION", ""))
    for server in routing.list_nodes(engine.client):
        yield server, f"{_escape(engine.keys.prefix)}*"
        if web:
            yield server, f"{_escape(web)}*"
    if elsewhere.partition("://")[0] in SCHEMES and elsewhere != conf.REDIS_URL and web:
        for server in routing.list_nodes(connection.connect(elsewhere)):
            yield server, f"{_escape(web)}*"


def _escape(text: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def _read_pages(server: redis.Redis, pattern: str) -> Iterator[list[bytes]]:
    cursor: Any = 0
    while True:
        (answer,) = _pipe(server, [("SCAN", cursor, "MATCH", pattern, "COUNT", PAGE)])
        cursor, keys = answer
        yield list(dict.fromkeys(keys))
        if int(cursor) == 0:
            return


def _pipe(server: redis.Redis, commands: list[tuple[Any, ...]]) -> list[Any]:
    """Send commands in one round trip; their answers come as bytes."""
    pipeline = server.pipeline(transaction=False)
    for words in commands:
        pipeline.execute_command(*words, NEVER_DECODE=True)
    found: list[Any] = pipeline.execute()
    return found


def _decode(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_none(place: Place) -> Iterator[list[Entry]]:
    """Skip a key that went since it was listed, or of a kind that the product does not use."""
    yield []


def _read_string(place: Place) -> Iterator[list[Entry]]:
    (value,) = _pipe(place.server, [("GET", place.key)])
    yield [(b"", value or b"")]


def _read_list(place: Place) -> Iterator[list[Entry]]:
    start = 0
    while True:
        (items,) = _pipe(place.server, [("LRANGE", place.key, start, start + PART - 1)])
        yield [(str(start + at).encode(), item) for at, item in enumerate(items)]
        if len(items) < PART:
            return
        start += PART


def _read_stream(place: Place) -> Iterator[list[Entry]]:
    start = "-"
    while True:
        (entries,) = _pipe(place.server, [("XRANGE", place.key, start, "+", "COUNT", PART)])
        yield [(id, b"\0".join(part for pair in (fields or {}).items() for part in pair)) for id, fields in entries]
        if len(entries) < PART:
            return
        start = f"({entries[-1][0].decode()}"


def _scan(command: str, read: Callable[[Any], list[Entry]]) -> Callable[[Place], Iterator[list[Entry]]]:
    def reader(place: Place) -> Iterator[list[Entry]]:
        cursor: Any = 0
        while True:
            (answer,) = _pipe(place.server, [(command, place.key, cursor, "COUNT", PART)])
            cursor, found = answer
            yield read(found)
            if int(cursor) == 0:
                return

    return reader


READERS: dict[str, Callable[[Place], Iterator[list[Entry]]]] = {
    "string": _read_string,
    "list": _read_list,
    "stream": _read_stream,
    "hash": _scan("HSCAN", lambda found: list(found.items())),
    "set": _scan("SSCAN", lambda found: [(member, member) for member in found]),
    "zset": _scan("ZSCAN", lambda found: [(member, member) for member, _ in found]),
}


def remove_entry(place: Place, entry: Entry, masked: bytes) -> None:
    """Remove a member of a key, or put ``masked`` in the place of its content where a removal would break the rest."""
    name, content = entry
    if place.kind == "string":
        words: tuple[Any, ...] = ("DEL", place.key)
    elif place.kind == "list":
        words = ("LSET", place.key, int(name), masked)
    elif place.kind == "stream":
        words = ("XDEL", place.key, name)
    elif place.kind == "hash":
        words = ("HSET", place.key, name, masked) if masked != content else ("HDEL", place.key, name)
    else:
        words = ("ZREM" if place.kind == "zset" else "SREM", place.key, name)
    _pipe(place.server, [words])
