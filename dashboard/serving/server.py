"""Configures and runs uvicorn."""

from __future__ import annotations

import gc
import socket
import sys
from types import FrameType

import uvicorn

from dashboard.live.sockets.frame_writer import SocketProtocol
from machines.conf import conf

from . import shutdown
from .connection_turns import Protocol

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
