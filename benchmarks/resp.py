"""The Redis protocol, as little of it as a load driver needs."""

from __future__ import annotations

import socket
from urllib.parse import unquote, urlsplit


def encode(*words: str | int | bytes) -> bytes:
    """One command, ready to send."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def connect(url: str) -> socket.socket:
    """A blocking socket to ``redis://[:password@]host:port[/db]`` or ``unix://path``."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(unquote(parts.path))
    else:
        sock = socket.create_connection((parts.hostname or "localhost", parts.port or 6379))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for command in _opening(parts.username, parts.password, parts.path if parts.scheme != "unix" else ""):
        sock.sendall(command)
        if not sock.recv(1000).startswith(b"+"):
            raise ConnectionError("the server refused the login or the database of the URL")
    return sock


def _opening(username: str | None, password: str | None, path: str) -> list[bytes]:
    commands = []
    if password:
        commands.append(encode("AUTH", *([username] if username else []), password))
    if path.strip("/"):
        commands.append(encode("SELECT", path.strip("/")))
    return commands
