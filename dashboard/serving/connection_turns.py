"""Reads the first request of new connections in turns of their addresses, a few in each round of the event loop.

To take a connection in costs next to nothing; to read its first request, and above all the handshake of a websocket,
half a millisecond of the event loop. Six hundred that arrive together would be read in one go, before anything else is.
Behind a proxy all come from one address: then it is the proxy that has to be fair.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from machines.people.limits import network_of

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


_arrivals: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ConnectionTurns] = weakref.WeakKeyDictionary()


def arrivals(loop: asyncio.AbstractEventLoop) -> ConnectionTurns:
    found = _arrivals.get(loop)
    if found is None:
        found = _arrivals[loop] = ConnectionTurns(loop)
    return found


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
            arrivals(self.loop).add(_find_address(self.transport), self._read)
        self._first += data

    def _read(self) -> None:
        data, self._first = self._first or b"", None
        if not self.transport.is_closing():
            self.transport.resume_reading()
            super().data_received(data)


def _find_address(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return network_of(str(peer[0])) if isinstance(peer, tuple) and peer else ""
