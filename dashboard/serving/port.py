"""Binds the listening socket before anything else starts, so that a busy port is reported at once."""

from __future__ import annotations

import errno
import socket

TRIES = 50


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
