"""Frames on the socket to a helper process: a JSON header and a payload of bytes, each with its length in front."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

LENGTH = struct.Struct(">II")
PIECE = 1 << 16  # bytes


class Closed(Exception):
    """The other end is gone."""


def send(link: socket.socket, header: dict[str, Any], payload: bytes) -> None:
    """Raise OSError, TimeoutError after the socket's timeout."""
    head = json.dumps(header).encode()
    link.sendall(LENGTH.pack(len(head), len(payload)) + head + payload)


def receive(link: socket.socket, until: float | None = None) -> tuple[dict[str, Any], bytes]:
    """Receive a frame. ``until``: a monotonic moment. Raises Closed, OSError, TimeoutError."""
    head, payload = LENGTH.unpack(_read_exactly(link, LENGTH.size, until))
    return json.loads(_read_exactly(link, head, until)), _read_exactly(link, payload, until)


def _read_exactly(link: socket.socket, count: int, until: float | None) -> bytes:
    pieces, left = [], count
    while left:
        if until is not None:
            link.settimeout(max(0.001, until - time.monotonic()))
        piece = link.recv(min(left, PIECE))
        if not piece:
            raise Closed
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def pack(text: str | bytes) -> tuple[bool, bytes]:
    """Tell whether it is text, and its bytes: half a surrogate pair, too, which the reader is to complain of."""
    return (True, text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else (False, text)


def unpack(is_text: bool, raw: bytes) -> str | bytes:
    return raw.decode("utf-8", "surrogatepass") if is_text else raw
