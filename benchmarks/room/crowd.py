"""Pages that are open: websocket clients which time how long a step takes to reach them, and some that never read.

They read frames by hand: with a client library a thousand of them take more of the machine than what they measure.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import struct
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection as Pipe
from urllib.parse import urlsplit

OPEN_AT_ONCE = 25
PATIENCE = 60.0  # seconds until all have their first snapshot
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10  # opcodes


def serve(pipe: Pipe, address: str, cookies: list[str], topics: list[str], silent: int, mark: str) -> None:
    """A process of clients, one for each topic; the last ``silent`` of them never read what they are sent.

    ``mark``: the transition whose counter is looked for in the frames. Told "start" it begins to take times, told
    "stop" it answers with (frames, clients that were closed, {count: [moments a client saw it, in s]}).
    """
    asyncio.run(_Crowd(address, cookies, mark).serve(pipe, topics, silent))


class _Crowd:
    def __init__(self, address: str, cookies: list[str], mark: str) -> None:
        self.origin = address.rstrip("/")
        self.cookies = itertools.cycle(cookies)
        self.mark = re.compile(rf'"{re.escape(mark)}":\s*(\d+)'.encode())
        self._forget()

    def _forget(self) -> None:
        self.frames = self.closed = 0
        self.seen: dict[int, list[float]] = {}

    async def serve(self, pipe: Pipe, topics: list[str], silent: int) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                clients = await self._open(topics)
        except Exception as error:
            pipe.send(RuntimeError(f"the clients: {error!r}"))
            return
        for client in clients[len(clients) - silent :]:
            client.transport.pause_reading()
        pipe.send(len(clients))
        while (order := await asyncio.to_thread(pipe.recv)) is not None:
            if order == "stop":
                pipe.send((self.frames, self.closed, self.seen))
            self._forget()
        for client in clients:
            client.transport.abort()

    async def _open(self, topics: Iterable[str]) -> list[_Client]:
        gate = asyncio.Semaphore(OPEN_AT_ONCE)
        host = urlsplit(self.origin)

        async def one(topic: str) -> _Client:
            async with gate:
                loop = asyncio.get_running_loop()
                _, client = await loop.create_connection(lambda: _Client(self, topic), host.hostname, host.port)
                await client.ready
                return client

        return list(await asyncio.gather(*map(one, topics)))


class _Client(asyncio.Protocol):
    """One websocket. ``ready`` is done with its first snapshot."""

    def __init__(self, crowd: _Crowd, topic: str) -> None:
        self._crowd = crowd
        self._topic = topic
        self._buffer = b""
        self._open = False
        self._known = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        origin = self._crowd.origin
        lines = (
            "GET /ws/live/ HTTP/1.1", f"Host: {urlsplit(origin).netloc}", f"Origin: {origin}", "Upgrade: websocket",
            "Connection: Upgrade", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13", f"Cookie: {next(self._crowd.cookies)}",
        )  # fmt: skip
        transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())

    def connection_lost(self, error: Exception | None) -> None:
        self._crowd.closed += 1
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"closed before the first snapshot: {error!r}"))

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._buffer += data
        if not self._open and not self._is_opened():
            return
        at = 0
        while (frame := _split(self._buffer, at)) is not None:
            opcode, payload, at = frame
            self._take(opcode, payload, now)
        self._buffer = self._buffer[at:]

    def _is_opened(self) -> bool:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        if b" 101 " not in head.partition(b"\r\n")[0]:
            self.ready.set_exception(ConnectionError(head.decode("latin-1")))
            self.transport.abort()
            return False
        self._buffer, self._open = rest, True
        self.transport.write(_masked(TEXT, json.dumps({"type": "subscribe", "topic": self._topic}).encode()))
        return True

    def _take(self, opcode: int, payload: bytes, now: float) -> None:
        if opcode == PING:
            self.transport.write(_masked(PONG, payload))
        elif opcode == CLOSE:
            self.transport.close()
        elif not self.ready.done():
            self._wait_for_snapshot(payload)
        else:
            self._time(payload, now)

    def _wait_for_snapshot(self, payload: bytes) -> None:
        kind = json.loads(payload)["type"]
        if kind == "snapshot":
            self.ready.set_result(None)
        elif kind == "error":
            self.ready.set_exception(RuntimeError(f"{self._topic} may not be watched: {payload!r}"))

    def _time(self, payload: bytes, now: float) -> None:
        crowd = self._crowd
        crowd.frames += 1
        found = crowd.mark.search(payload)
        if found is not None and (count := int(found[1])) > self._known:
            self._known = count
            crowd.seen.setdefault(count, []).append(now)


def _split(data: bytes, at: int) -> tuple[int, bytes, int] | None:
    """The frame at ``at``: opcode, payload, where the next begins; None while it is not whole."""
    if len(data) < at + 2:
        return None
    opcode, size, start = data[at] & 15, data[at + 1] & 127, at + 2
    if size > 125:
        length = 2 if size == 126 else 8
        if len(data) < start + length:
            return None
        size, start = int.from_bytes(data[start : start + length]), start + length
    return None if len(data) < start + size else (opcode, data[start : start + size], start + size)


def _masked(opcode: int, payload: bytes) -> bytes:
    """A short frame of a client; a mask of zeros leaves the payload as it is."""
    assert len(payload) < 126
    return struct.pack("!BBI", 0x80 | opcode, 0x80 | len(payload), 0) + payload
