"""Connections that are kept at hand for function calls: one call after the other, sent once.

Between two calls redis-py's pool counts, times and announces each connection it hands out; of a call that takes less
than a tenth of a millisecond that is a good third. What is kept here was taken from that pool once, stays among its
connections in use (so that closing the client closes it, too), and goes back to it when there are more than a few.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from redis import ConnectionPool
from redis import connection as redis_connection
from redis.exceptions import DataError, RedisError, ResponseError

KEPT = 16  # connections of a pool: so many threads call at once and find one at hand
ROOM = 4  # times as many a pool must be able to make: whoever else uses it finds none missing

NAME = "signalbox_lines"

Word = str | int | bytes
Connection = Any  # of redis-py, which leaves half of its methods untyped
# What redis-py packs words with, where it is installed: called without the look at each word for what no call here has
# (names of two words, other kinds of bytes), which takes longer than the packing.
_pack: Any = getattr(getattr(redis_connection, "hiredis", None), "pack_command", None)


class ConnectionCache:
    """Of one pool. Safe to share between threads; a process that was forked begins with none."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._idle: deque[Connection] = deque()
        self._keeps = _may_keep(pool)
        self._packs = _pack is not None and pool.connection_kwargs.get("command_packer") is None
        _all.add(self)

    def exchange(self, words: Sequence[Word]) -> Any:
        """One command and its answer. Raises what redis-py raises."""
        connection, in_order = self._taken(), True
        try:
            if self._packs:
                connection.send_packed_command([_packed(words)])
            else:
                connection.send_command(*words)
            return connection.read_response()
        except (ResponseError, DataError):
            raise  # read to its end, or never sent: the connection is in order
        except BaseException:
            in_order = False
            connection.disconnect()  # half an answer may be on its way: nobody may read it as theirs
            raise
        finally:
            self._give_back(connection, in_order)

    def forget(self) -> None:
        """Drops what is at hand without a word to the server: in a child, it is the parent's."""
        self._idle.clear()

    def _taken(self) -> Connection:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._pool.get_connection()
        try:
            if _is_sound(connection):
                return connection
            connection.disconnect()
            connection.connect()
        except BaseException:
            self._pool.release(connection)
            raise
        return connection

    def _give_back(self, connection: Connection, in_order: bool) -> None:
        if in_order and self._keeps and len(self._idle) < KEPT and not connection.should_reconnect():
            self._idle.append(connection)
        else:
            self._pool.release(connection)


def _is_sound(connection: Connection) -> bool:
    """Is nothing waiting to be read, the end that the server made of it among that?"""
    try:
        return not connection.can_read()
    except (RedisError, OSError):
        return False


def _may_keep(pool: ConnectionPool) -> bool:
    """A pool that waits for connections, follows a master, or renews its credentials wants each of them back."""
    renewed = pool.connection_kwargs.get("credential_provider") is not None
    return type(pool) is ConnectionPool and not renewed and pool.max_connections >= KEPT * ROOM


def _packed(words: Sequence[Word]) -> bytes:
    try:
        packed: bytes = _pack(tuple(words))
    except TypeError as error:
        raise DataError(str(error)) from error
    return packed


_making = threading.Lock()
_all: weakref.WeakSet[ConnectionCache] = weakref.WeakSet()


def get_cache(pool: ConnectionPool) -> ConnectionCache:
    """The lines of a pool: the same ones for all that call over it, and gone with it."""
    found: ConnectionCache | None = pool.__dict__.get(NAME)
    if found is None:
        with _making:
            found = pool.__dict__.setdefault(NAME, ConnectionCache(pool))
    return found


def _forked() -> None:
    global _making
    _making = threading.Lock()
    for lines in list(_all):
        lines.forget()


os.register_at_fork(after_in_child=_forked)
