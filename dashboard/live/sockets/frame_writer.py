"""Gives the live view the transport of a websocket under uvicorn, as an extension of the ASGI scope.

A frame for a thousand sockets is then encoded once and written a thousand times. Under another server, or with
another websocket protocol, the scope has no such extension and frames go through ``send``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import OPEN

from dashboard.live.outbox import EXTENSION

if TYPE_CHECKING:  # a program may import the server before Django has its apps
    from dashboard.live.messages import Frame

#: what this module needs to know of a protocol; a release of uvicorn that names it otherwise offers no extension
NEEDED = ("conn", "transport", "writable", "handshake_complete", "close_sent", "disconnected")


class TransportWriter:
    """Writes to one connection between two messages of its protocol, which keeps the order: neither waits in between.

    The transport buffers 64 kB and what a frame is longer; then it calls ``pause_writing``, and ``is_ready`` is False
    until the client has read.
    """

    __slots__ = ("_connection", "_protocol", "_transport", "_writable")

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self._connection = protocol.conn
        self._transport: asyncio.Transport = protocol.transport
        self._writable: asyncio.Event = protocol.writable

    @classmethod
    def of(cls, protocol: Any) -> Self | None:
        """Return a writer; None if frames need more than a header: extensions, such as compression, have a state of
        their own."""
        if any(not hasattr(protocol, name) for name in NEEDED) or protocol.conn.extensions:
            return None
        return cls(protocol)

    def is_ready(self) -> bool:
        protocol = self._protocol
        return (
            self._writable.is_set()
            and protocol.handshake_complete
            and not protocol.close_sent
            and not protocol.disconnected
            and self._connection.state is OPEN
            and not self._transport.is_closing()
        )

    def write(self, frame: Frame) -> None:
        self._transport.write(frame.wire)


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's own, with the extension in the scope."""

    async def run_asgi(self) -> None:
        writer = TransportWriter.of(self)
        if writer is not None:
            self.scope["extensions"][EXTENSION] = writer  # type: ignore[literal-required]
        await super().run_asgi()
