"""Binds the listening socket, so that a busy port is reported at once, and configures and runs uvicorn.

``ConnectionTurns`` reads the first request of new connections in turns of their addresses. To take a connection in
costs next to nothing; to read its first request, and above all the handshake of a websocket, half a millisecond of the
event loop. Six hundred that arrive together would be read in one go, before anything else is. Behind a proxy all come
from one address: then it is the proxy that has to be fair.
"""

import asyncio
import errno
import gc
import socket
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from dashboard.live.sockets.frame_writer import SocketProtocol
from dashboard.shared.concurrency_limits import PerLoop
from machines.conf import conf
from machines.people.client_address import network_of

from . import shutdown

APPLICATION = "dashboard.asgi:application"
CLOSING = 3  # seconds open requests and sockets get at the end; pages reconnect by themselves
LARGEST_FRAME = 64 * 1024  # bytes of one websocket message; the live protocol itself refuses far smaller ones
SWITCH = 0.001  # seconds a thread computes before another gets the interpreter: the event loop waits so long for each
PING = 20.0  # seconds between two pings, and before an answer counts as missing


class Site(uvicorn.Server):
    """Fails ``/readyz`` as soon as it is asked to stop, while open requests get their answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, and exempt what exists then from garbage collection: a search through it would hold the
        loop for 0.1 s, repeatedly while connections come and go."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        shutdown.set()
        super().handle_exit(sig, frame)


def server(*, log_level: str = "warning") -> Site:
    """Return a server that is ready to ``run(sockets=[...])``. No access log: the reverse proxy in front keeps one."""
    return Site(
        uvicorn.Config(
            APPLICATION,
            http=Protocol,
            ws=SocketProtocol,
            log_level=log_level,
            access_log=False,
            server_header=False,
            # X-Forwarded-For counts from these alone: not from loopback, and not by a variable of uvicorn's own.
            proxy_headers=bool(conf.TRUSTED_PROXIES),
            forwarded_allow_ips=list(conf.TRUSTED_PROXIES),
            lifespan="off",
            ws_max_size=LARGEST_FRAME,
            ws_ping_interval=PING,
            ws_ping_timeout=PING,
            ws_per_message_deflate=False,  # deltas are short: compressing them costs more than it saves
            timeout_graceful_shutdown=CLOSING,
        )
    )


def run(listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT."""
    sys.setswitchinterval(SWITCH)
    server().run(sockets=[listener])


class PortTaken(Exception):
    """``port`` cannot be had; the text says why."""

    def __init__(self, port: int, why: str) -> None:
        self.port = port
        super().__init__(f"port {port} cannot be had: {why}")


def listen(host: str, port: int, *, tries: int = 1, backlog: int = 2048) -> socket.socket:
    """Return a listener on ``port``, or on the first free one of ``tries`` ports from there. 0 takes any free port."""
    tries = 1 if port == 0 else tries
    why = ""
    for candidate in range(port, min(port + tries, 65536)):
        try:
            return _listen(host, candidate, backlog)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise PortTaken(candidate, error.strerror or str(error)) from None
            why = error.strerror
    last = f" (and {tries - 1} after it)" if tries > 1 else ""
    raise PortTaken(port, f"{why}{last}")


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio switches Nagle's delay off: an answer is written in parts, and a client that
    # acknowledges late (40 ms) would hold up the second one.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port we left a moment ago is free
        listener.bind((host, port))
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener


def address(listener: socket.socket) -> str:
    """Return the URL that a browser on this machine opens."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}/"


AT_ONCE = 8  # first requests that are read in one round


class ConnectionTurns:
    """Holds the turns of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at_once: int = AT_ONCE) -> None:
        self._loop = loop
        self._at_once = at_once
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()

    def add(self, address: str, read: Callable[[], None]) -> None:
        """Add a connection. ``read`` is called when its turn comes: in the next round, unless many came with it."""
        if not self._lines:
            self._loop.call_soon(self._round)
        self._lines.setdefault(address, deque()).append(read)

    def _round(self) -> None:
        for _ in range(self._at_once):
            if not self._lines:
                return
            address, line = next(iter(self._lines.items()))
            read = line.popleft()
            if line:
                self._lines.move_to_end(address)
            else:
                del self._lines[address]
            read()
        if self._lines:
            self._loop.call_soon(self._round)


arrivals = PerLoop(lambda: ConnectionTurns(asyncio.get_running_loop()))


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's own, which waits for its turn with the first bytes of a connection."""

    def connection_made(self, transport: Any) -> None:
        self._first: bytes | None = b""  # None once they were read
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._first is None:
            super().data_received(data)
            return
        if not self._first:
            self.transport.pause_reading()
            arrivals().add(_find_address(self.transport), self._read)
        self._first += data

    def _read(self) -> None:
        data, self._first = self._first or b"", None
        if not self.transport.is_closing():
            self.transport.resume_reading()
            super().data_received(data)


def _find_address(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return network_of(str(peer[0])) if isinstance(peer, tuple) and peer else ""
