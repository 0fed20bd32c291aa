"""Open pages: websocket clients that subscribe to the machine and count what they are sent."""

from __future__ import annotations

import asyncio
import json
from multiprocessing.connection import Connection as Pipe

from websockets.asyncio.client import ClientConnection, connect

TOPIC = "machine:activation"
PATIENCE = 30.0  # seconds until all pages must have their first snapshot


def serve(pipe: Pipe, address: str, cookie: str, pages: int) -> None:
    """The process of the pages: told "open" and "close"; answers how many frames came in between."""
    asyncio.run(_Crowd(address, cookie, pages).serve(pipe))


class _Crowd:
    def __init__(self, address: str, cookie: str, pages: int) -> None:
        self._origin = address.rstrip("/")
        self._url = self._origin.replace("http", "ws", 1) + "/ws/live/"
        self._cookie = cookie
        self._pages = pages
        self._sockets: list[ClientConnection] = []
        self._readers: list[asyncio.Task[None]] = []
        self._frames = 0

    async def serve(self, pipe: Pipe) -> None:
        while (order := await asyncio.to_thread(pipe.recv)) is not None:
            try:
                pipe.send(await (self._open() if order == "open" else self._close()))
            except Exception as error:
                pipe.send(RuntimeError(f"the pages: {error!r}"))

    async def _open(self) -> int:
        async with asyncio.timeout(PATIENCE):
            self._sockets = [await self._connect() for _ in range(self._pages)]
        self._frames = 0
        self._readers = [asyncio.create_task(self._read(socket)) for socket in self._sockets]
        return len(self._sockets)

    async def _connect(self) -> ClientConnection:
        headers = {"Cookie": self._cookie}
        socket = await connect(self._url, origin=self._origin, additional_headers=headers, compression=None)
        await socket.send(json.dumps({"type": "subscribe", "topic": TOPIC}))
        while (frame := json.loads(await socket.recv()))["type"] != "snapshot":
            if frame["type"] == "error":
                raise RuntimeError(f"the page may not watch: {frame}")
        return socket

    async def _read(self, socket: ClientConnection) -> None:
        async for _frame in socket:
            self._frames += 1

    async def _close(self) -> int:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await asyncio.gather(*(socket.close() for socket in self._sockets))
        return self._frames
