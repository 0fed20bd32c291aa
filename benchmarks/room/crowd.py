"""Pages that are open: websocket clients which time how long a step takes to reach them, and some that never read."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection as Pipe

from websockets.asyncio.client import ClientConnection, connect

OPEN_AT_ONCE = 25
PATIENCE = 60.0  # seconds until all have their first snapshot


def serve(pipe: Pipe, address: str, cookie: str, topics: list[str], silent: int, mark: str) -> None:
    """A process of clients, one for each topic; the last ``silent`` of them never read what they are sent.

    ``mark``: the transition whose counter is looked for in the frames. Told "start" it begins to take times, told
    "stop" it answers with (frames, bytes, clients that were closed, {count: [moments a client saw it, in s]}).
    """
    asyncio.run(_Crowd(address, cookie, mark).serve(pipe, topics, silent))


class _Crowd:
    def __init__(self, address: str, cookie: str, mark: str) -> None:
        self._origin = address.rstrip("/")
        self._url = self._origin.replace("http", "ws", 1) + "/ws/live/"
        self._cookie = cookie
        self._mark = re.compile(rf'"{re.escape(mark)}":\s*(\d+)')
        self._forget()

    def _forget(self) -> None:
        self._frames = self._bytes = self._closed = 0
        self._seen: dict[int, list[float]] = {}

    async def serve(self, pipe: Pipe, topics: list[str], silent: int) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                sockets = await self._open(topics)
        except Exception as error:
            pipe.send(RuntimeError(f"the clients: {error!r}"))
            return
        reading = sockets[: len(sockets) - silent]
        readers = [asyncio.create_task(self._read(socket)) for socket in reading]
        pipe.send(len(sockets))
        while (order := await asyncio.to_thread(pipe.recv)) is not None:
            if order == "stop":
                pipe.send((self._frames, self._bytes, self._closed, self._seen))
            self._forget()
        for reader in readers:
            reader.cancel()
        for socket in sockets:
            socket.transport.abort()

    async def _open(self, topics: Iterable[str]) -> list[ClientConnection]:
        gate = asyncio.Semaphore(OPEN_AT_ONCE)

        async def one(topic: str) -> ClientConnection:
            async with gate:
                return await self._connect(topic)

        return list(await asyncio.gather(*map(one, topics)))

    async def _connect(self, topic: str) -> ClientConnection:
        headers = {"Cookie": self._cookie}
        socket = await connect(
            self._url, origin=self._origin, additional_headers=headers, compression=None, ping_interval=None
        )
        await socket.send(json.dumps({"type": "subscribe", "topic": topic}))
        while (frame := json.loads(await socket.recv()))["type"] != "snapshot":
            if frame["type"] == "error":
                raise RuntimeError(f"{topic} may not be watched: {frame}")
        return socket

    async def _read(self, socket: ClientConnection) -> None:
        known = 0
        try:
            async for frame in socket:
                now = time.time()
                self._frames += 1
                self._bytes += len(frame)
                found = self._mark.search(str(frame))
                if found is not None and (count := int(found[1])) > known:
                    known = count
                    self._seen.setdefault(count, []).append(now)
        finally:
            self._closed += 1
