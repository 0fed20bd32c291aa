"""A cache of idle connections for function calls, each of which is sent once.

redis-py's pool counts, times and reports each connection it hands out between two calls; for a call of less than a
tenth of a millisecond that is a third of the time. Connections here are taken from the pool once, stay among its
connections in use (so that closing the client closes them), and go back to it when there are more than a few.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from redis import ConnectionPool
from redis import connection as redis_connection
from redis.exceptions import ConnectionError, DataError, RedisError, ResponseError, TimeoutError
from redis.sentinel import SentinelConnectionPool

KEPT = 16  # idle connections of a pool: so many threads may call at once without asking the pool
AHEAD = 4  # portions of a stream that are sent before the first answer is read, and all but the last
ROOM = 4  # times as many connections a pool must allow, so that its other users find enough

NAME = "signalbox_connections"
UNSENT = "signalbox_unsent"  # attribute of errors that were raised before anything was sent

Word = str | int | bytes
Connection = Any  # of redis-py, which leaves half of its methods untyped
# What redis-py packs words with, where it is installed: called without the look at each word for what no call here has
# (names of two words, other kinds of bytes), which takes longer than the packing.
_pack: Any = getattr(getattr(redis_connection, "hiredis", None), "pack_command", None)


class ConnectionCache:
    """The idle connections of one pool. Safe to share between threads; a forked process begins with none."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._idle: deque[Connection] = deque()
        self._keeps = _may_keep(pool)
        self._follows = isinstance(pool, SentinelConnectionPool)
        self._packs = _pack is not None and pool.connection_kwargs.get("command_packer") is None
        _all.add(self)

    def exchange(self, words: Sequence[Word]) -> Any:
        """Send one command and return its answer. Raises what redis-py raises; errors of connecting, before anything
        was sent, carry the attribute ``UNSENT``."""
        connection, in_order = self._acquire(), True
        try:
            self._send(connection, (words,))
            return connection.read_response()
        except (ResponseError, DataError):
            raise  # read to its end, or never sent: the connection is in order
        except BaseException:
            in_order = False
            connection.disconnect()  # half an answer may be on its way, which the next call must not read
            raise
        finally:
            self._give_back(connection, in_order)

    def begin(self, commands: Sequence[Sequence[Word]]) -> Exchange:
        """Send several commands at once; their answers are read by ``Exchange.finish``. Raises as ``exchange``."""
        connection = self._acquire()
        try:
            self._send(connection, commands)
        except DataError:
            self._give_back(connection, True)
            raise
        except BaseException:
            connection.disconnect()
            self._give_back(connection, False)
            raise
        return Exchange(self, connection, len(commands))

    def stream(self, portions: Iterable[Sequence[Sequence[Word]]]) -> Iterator[Any]:
        """Send portions of commands one after the other, so that the server works on the first while the next is made;
        yield their answers in order, as they arrive. An error of the server is an answer. Raises as ``exchange``.

        The last one is sent when the answers to the first are there. A server reads what has come as one, and answers
        it at its end: this way it works on the last one while the answers to those before are read.
        """
        connection, in_order = self._acquire(), False
        try:
            sent: list[int] = []  # commands of each portion
            last: Sequence[Sequence[Word]] | None = None
            for commands in portions:
                if last is not None:
                    sent.append(self._send_next(connection, last, sent))
                    last = None
                if len(sent) < AHEAD:
                    sent.append(self._send_next(connection, commands, sent))
                else:
                    last = commands
            for place, count in enumerate(sent):
                for _ in range(count):
                    yield _read(connection)
                if not place and last is not None:
                    sent.append(self._send_next(connection, last, sent))
            in_order = True
        finally:
            if not in_order:
                connection.disconnect()
            self._give_back(connection, in_order)

    def _send_next(self, connection: Connection, commands: Sequence[Sequence[Word]], sent: Sequence[int]) -> int:
        """Send a portion behind others; return the number of its commands."""
        if sent and connection._sock is None:  # closed by another thread; redis-py would open it anew
            raise ConnectionError("the connection was closed between two commands")
        # A check of the connection reads an answer, which may only be done while none is on its way.
        connection.send_packed_command(self._pack_all(connection, commands), check_health=not sent)
        return len(commands)

    def _send(self, connection: Connection, commands: Sequence[Sequence[Word]]) -> None:
        connection.send_packed_command(self._pack_all(connection, commands))

    def _pack_all(self, connection: Connection, commands: Sequence[Sequence[Word]]) -> list[bytes]:
        """Pack commands; return parts to be sent one after the other."""
        if self._packs:
            return [b"".join(map(_pack_words, commands))]
        packed: list[bytes] = connection.pack_commands(commands)
        return packed

    def forget(self) -> None:
        """Drop the idle connections without closing them: in a forked child they belong to the parent."""
        self._idle.clear()

    def _acquire(self) -> Connection:
        try:
            return self._take()
        except BaseException as error:
            setattr(error, UNSENT, True)
            raise

    def _take(self) -> Connection:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._pool.get_connection()
        try:
            if _is_sound(connection) and (not self._follows or self._leads_to_master(connection)):
                return connection
            connection.disconnect()
            connection.connect()
        except BaseException:
            self._pool.release(connection)
            raise
        return connection

    def _leads_to_master(self, connection: Connection) -> bool:
        """Tell whether a connection leads to the master that the Sentinels named last."""
        pool: Any = self._pool
        return bool((connection.host, connection.port) == pool.master_address)

    def _give_back(self, connection: Connection, in_order: bool) -> None:
        if in_order and self._keeps and len(self._idle) < KEPT and not connection.should_reconnect():
            self._idle.append(connection)
        else:
            self._pool.release(connection)


class Exchange:
    """Commands that were sent together on one connection, and whose answers were not read yet."""

    __slots__ = ("_cache", "_connection", "_count")

    def __init__(self, cache: ConnectionCache, connection: Connection, count: int) -> None:
        self._cache = cache
        self._connection = connection  # None once it was given back
        self._count = count

    def finish(self, deadline: float | None = None) -> list[Any]:
        """Read the answers, in order; an error of the server is the answer of its command. ``deadline``: the moment of
        the monotonic clock by which the first answer has to come, by default the timeout of the connection."""
        connection: Any = self._connection
        self._connection, in_order = None, False
        try:
            if deadline is not None and not connection.can_read(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("the server did not answer in time")
            answers = [_read(connection) for _ in range(self._count)]
            in_order = True
            return answers
        finally:
            if not in_order:
                connection.disconnect()
            self._cache._give_back(connection, in_order)

    def abandon(self) -> None:
        """Close the connection, unless ``finish`` was called: no other call may read these answers."""
        connection: Any = self._connection
        self._connection = None
        if connection is not None:
            connection.disconnect()
            self._cache._give_back(connection, False)


def _read(connection: Connection) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _is_sound(connection: Connection) -> bool:
    """Tell whether a connection is open with nothing left to read."""
    try:
        return not connection.can_read()
    except (RedisError, OSError):
        return False


def _may_keep(pool: ConnectionPool) -> bool:
    """Tell whether connections of a pool may be kept: not where the pool blocks, follows a replica or renews
    credentials. Kept connections to a master that Sentinels watch are closed once they name another one."""
    renewed = pool.connection_kwargs.get("credential_provider") is not None
    known = type(pool) is ConnectionPool or (type(pool) is SentinelConnectionPool and pool.is_master)
    return known and not renewed and pool.max_connections >= KEPT * ROOM


def _pack_words(words: Sequence[Word]) -> bytes:
    try:
        packed: bytes = _pack(tuple(words))
    except TypeError as error:
        raise DataError(str(error)) from error
    return packed


_making = threading.Lock()
_all: weakref.WeakSet[ConnectionCache] = weakref.WeakSet()


def get_cache(pool: ConnectionPool) -> ConnectionCache:
    """Return the cache of a pool: the same for all its callers, and gone with the pool."""
    found: ConnectionCache | None = pool.__dict__.get(NAME)
    if found is None:
        with _making:
            found = pool.__dict__.setdefault(NAME, ConnectionCache(pool))
    return found


def use_cache(pool: ConnectionPool, cache: ConnectionCache) -> None:
    """Give a pool its cache before its first use."""
    pool.__dict__[NAME] = cache


def _forget_connections() -> None:
    global _making
    _making = threading.Lock()
    for lines in list(_all):
        lines.forget()


os.register_at_fork(after_in_child=_forget_connections)
