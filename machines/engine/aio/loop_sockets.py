"""Sockets and connections of redis-py that wait in the event loop instead of holding its thread.

Code of redis-py runs unchanged in the greenlet of a call (``connection.waiting``): only its connections are other
ones. A connection is made in a thread, since looking up a name and a TLS handshake block; after that its socket never
does.
"""

import asyncio
import functools
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

import redis
from redis import connection as redis_connection
from redis import sentinel

from machines.engine.connection import connection_cache, waiting
from machines.engine.connection.client import Client

from .shared_connection import SharedCache

READ, WRITE = "read", "write"


class LoopSocket:
    """The methods of a socket that redis-py uses. One call at a time reads from it, and one writes."""

    def __init__(self, sock: socket.socket, timeout: float | None) -> None:
        sock.setblocking(False)
        self.raw = sock
        self.on_close: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._timeout = timeout
        self._waiters: dict[str, asyncio.Future[None]] = {}

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    def fileno(self) -> int:
        return self.raw.fileno()

    def pending(self) -> int:
        """Return the number of bytes that TLS has decrypted and nobody has read."""
        return self.raw.pending() if isinstance(self.raw, ssl.SSLSocket) else 0

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self._repeat(READ, functools.partial(self.raw.recv, size, flags))  # type: ignore[no-any-return]

    def recv_into(self, buffer: bytearray) -> int:
        return self._repeat(READ, functools.partial(self.raw.recv_into, buffer))  # type: ignore[no-any-return]

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._repeat(WRITE, functools.partial(self.raw.send, left)) :]

    def wait_until(self, what: str, timeout: float | None) -> None:
        """Wait until the socket can be read or written. Raises TimeoutError."""
        waiter = self._loop.create_future()
        add, remove = (
            (self._loop.add_reader, self._loop.remove_reader)
            if what == READ
            else (self._loop.add_writer, self._loop.remove_writer)
        )
        number = self.raw.fileno()
        add(number, _finish, waiter)
        self._waiters[what] = waiter
        try:
            waiting.wait(waiter if timeout is None else asyncio.wait_for(waiter, timeout))
        finally:
            if self._waiters.pop(what, None) is waiter and self.raw.fileno() == number:
                remove(number)

    def shutdown(self, how: int) -> None:
        self._leave_loop()
        self.raw.shutdown(how)

    def close(self) -> None:
        """Close the socket; calls that wait on it fail."""
        self._leave_loop()
        self.raw.close()
        if self.on_close is not None:
            self.on_close()

    def _leave_loop(self) -> None:
        number = self.raw.fileno()
        if self._pid != os.getpid():  # a forked child shares the selector of its parent's loop
            return
        if number >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(number)
            self._loop.remove_writer(number)
        for waiter in list(self._waiters.values()):
            if not waiter.done() and not self._loop.is_closed():
                waiter.set_exception(ConnectionAbortedError("the connection was closed"))
        self._waiters.clear()

    def _repeat(self, what: str, attempt: Callable[[], Any]) -> Any:
        """Do what a socket does as soon as it can."""
        while True:
            try:
                return attempt()
            except ssl.SSLWantReadError:
                wanted = READ
            except ssl.SSLWantWriteError:
                wanted = WRITE
            except (BlockingIOError, InterruptedError):
                wanted = what
            self.wait_until(wanted, self._timeout)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class _LoopConnection:
    """A connection of redis-py whose socket waits in the event loop: mixed into each class of connection."""

    def _connect(self) -> LoopSocket:
        base: Any = super()
        connection: Any = self
        return LoopSocket(waiting.wait(_make_in_thread(base._connect)), connection.socket_timeout)

    def connect(self) -> None:
        """Connect; a call that is cancelled on the way leaves no connection with half a handshake."""
        base: Any = super()
        try:
            base.connect()
        except BaseException:
            base.disconnect()
            raise

    def can_read(self, timeout: float = 0) -> bool:
        """Tell whether there is something to read, or comes within ``timeout`` seconds."""
        base: Any = super()
        connection: Any = self
        if timeout and connection._sock is not None and not base.can_read(0):
            try:
                connection._sock.wait_until(READ, timeout)
            except TimeoutError:
                return False
        return bool(base.can_read(0))


async def _make_in_thread(connect: Callable[[], socket.socket]) -> socket.socket:
    """Make a socket in a thread; one that comes after the call was cancelled is closed."""
    made = asyncio.get_running_loop().run_in_executor(None, connect)
    try:
        return await asyncio.shield(made)
    except asyncio.CancelledError:
        made.add_done_callback(_close)
        raise


def _close(made: asyncio.Future[socket.socket]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


class LoopConnection(_LoopConnection, redis_connection.Connection):
    """TCP."""


class LoopSSLConnection(_LoopConnection, redis_connection.SSLConnection):
    """TCP with TLS."""


class LoopUnixConnection(_LoopConnection, redis_connection.UnixDomainSocketConnection):
    """A unix socket."""


class LoopSentinelConnection(_LoopConnection, sentinel.SentinelManagedConnection):
    """TCP to the master that Sentinels name."""


class LoopSentinelSSLConnection(_LoopConnection, sentinel.SentinelManagedSSLConnection):
    """TCP with TLS to the master that Sentinels name."""


CLASSES: dict[type, type] = {
    redis_connection.Connection: LoopConnection,
    redis_connection.SSLConnection: LoopSSLConnection,
    redis_connection.UnixDomainSocketConnection: LoopUnixConnection,
    sentinel.SentinelManagedConnection: LoopSentinelConnection,
    sentinel.SentinelManagedSSLConnection: LoopSentinelSSLConnection,
}


def move_to_loop(client: Client) -> None:
    """Make a client use connections of the event loop from now on, to each node of a cluster and each Sentinel too.
    From then on its calls run in ``waiting.run``."""
    if isinstance(client, redis.RedisCluster):
        _move_cluster(client)
        return
    _move_pool(client.connection_pool)
    watchers = getattr(client.connection_pool, "sentinel_manager", None)
    for watcher in getattr(watchers, "sentinels", ()):
        _move_pool(watcher.connection_pool)


def _move_cluster(client: redis.RedisCluster) -> None:
    manager: Any = client.nodes_manager
    make_node = manager.create_redis_node

    def create_redis_node(*args: Any, **kwargs: Any) -> redis.Redis:
        made: redis.Redis = make_node(*args, **kwargs)
        _move_pool(made.connection_pool)
        return made

    manager.create_redis_node = create_redis_node
    for node in {*manager.nodes_cache.values(), *manager.startup_nodes.values()}:
        if node.redis_connection is not None:
            _move_pool(node.redis_connection.connection_pool)


def _move_pool(pool: Any) -> None:
    if pool.connection_class in CLASSES:  # else it was moved already
        pool.disconnect()
        pool.reset()
        pool.connection_class = CLASSES[pool.connection_class]
        connection_cache.use_cache(pool, SharedCache(pool))


def close(client: Client) -> None:
    """Close all connections of a client that was moved to the loop."""
    watchers = None if isinstance(client, redis.RedisCluster) else client.connection_pool
    client.close()
    for watcher in getattr(getattr(watchers, "sentinel_manager", None), "sentinels", ()):
        watcher.close()
