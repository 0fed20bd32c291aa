"""Binds the listening socket, so that a busy port is reported at once, and configures and runs uvicorn."""

import errno
import gc
import socket
import sys
from types import FrameType

import uvicorn

from dashboard.live.sockets.frame_writer import SocketProtocol
from machines.conf import conf

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
