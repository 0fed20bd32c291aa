"""The transport of a websocket under the site's own server, and what holds where there is none."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.frames import Frame as Reference
from websockets.frames import Opcode

from dashboard.live import messages
from dashboard.live.messages import Frame
from dashboard.live.outbox import EXTENSION
from dashboard.live.sockets.frame_writer import SocketProtocol, TransportWriter
from dashboard.serving.server import server
from tests.cases import for_each

PATIENCE = 60.0
ROOT = Path(__file__).resolve().parents[3]
LARGE = Frame("x" * 30_000)


@for_each("size", [0, 1, 125, 126, 127, 65_535, 65_536, 100_000])
def test_a_frame_is_written_as_the_websocket_library_writes_it(size: int) -> None:
    text = "x" * size
    assert Frame(text).wire == Reference(Opcode.TEXT, text.encode()).serialize(mask=False)


def test_messages_are_plain_ascii_whatever_is_in_them() -> None:
    assert messages.encode({"name": "\ud800 é"}).wire.isascii() is False  # the header is not
    assert messages.encode({"name": "\ud800 é"}).isascii()


def test_the_sites_server_offers_it() -> None:
    assert server().config.ws is SocketProtocol


def test_a_program_may_import_the_server_before_django_has_its_apps() -> None:
    code = "from dashboard.serving import server; from django.apps import apps; print(apps.ready)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


class Application:
    """Shows the scope, and waits for the client to go."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[tuple[dict[str, Any], Any]] = asyncio.get_running_loop().create_future()
        self.accept = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        self.opened.set_result((scope, send))
        await self.accept.wait()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        self.gone.set()


@contextlib.asynccontextmanager
async def serve(application: Any, **options: Any) -> AsyncIterator[str]:
    settings: dict[str, Any] = {"ws": SocketProtocol, "ws_per_message_deflate": False} | options
    config = uvicorn.Config(application, lifespan="off", log_level="error", timeout_graceful_shutdown=1, **settings)
    listener, running = socket.create_server(("127.0.0.1", 0)), uvicorn.Server(config)
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        running.should_exit = True
        await task


async def eventually(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_frames_are_written_between_messages_that_are_sent() -> None:
    application = Application()
    async with serve(application) as url:
        opening = asyncio.ensure_future(connect(url).__aenter__())
        scope, send = await application.opened
        writer = scope["extensions"][EXTENSION]
        assert not writer.is_ready(), "the handshake is not over"
        application.accept.set()
        client = await opening
        await eventually(writer.is_ready)
        writer.write(Frame("1"))
        await send({"type": "websocket.send", "text": "2"})
        writer.write(LARGE)
        await send({"type": "websocket.send", "text": "4"})
        async with asyncio.timeout(PATIENCE):
            assert [await client.recv() for _ in range(4)] == ["1", "2", LARGE, "4"]
        await client.close()
        await application.gone.wait()
        assert not writer.is_ready()


async def test_a_client_that_does_not_read_is_not_ready_and_its_buffer_is_bounded() -> None:
    application = Application()
    application.accept.set()
    async with serve(application) as url, connect(url, max_queue=1) as client:
        scope, _ = await application.opened
        writer = scope["extensions"][EXTENSION]
        await eventually(writer.is_ready)
        written = 0
        while writer.is_ready():
            writer.write(LARGE)
            written += 1
            await asyncio.sleep(0)
        assert writer._transport.get_write_buffer_size() < 64 * 1024 + 2 * len(LARGE)
        async with asyncio.timeout(PATIENCE):
            assert {await client.recv() for _ in range(written)} == {LARGE}
        await eventually(writer.is_ready)


async def test_a_socket_that_closes_takes_no_frames() -> None:
    application = Application()
    application.accept.set()
    async with serve(application) as url, connect(url) as client:
        scope, send = await application.opened
        writer = scope["extensions"][EXTENSION]
        await eventually(writer.is_ready)
        await send({"type": "websocket.close", "code": 4408})
        assert not writer.is_ready()
        async with asyncio.timeout(PATIENCE):
            await client.wait_closed()
        assert client.close_code == 4408


@pytest.mark.parametrize(
    "options", [{"ws_per_message_deflate": True}, {"ws": "websockets-sansio"}], ids=["compressed", "another protocol"]
)
async def test_without_it_frames_are_sent(options: dict[str, Any]) -> None:
    application = Application()
    application.accept.set()
    async with serve(application, **options) as url, connect(url) as client:
        scope, send = await application.opened
        assert EXTENSION not in scope["extensions"]
        await eventually(lambda: client.protocol.state.name == "OPEN")
        await send({"type": "websocket.send", "text": LARGE})
        assert await client.recv() == LARGE


def test_a_protocol_that_names_things_otherwise_offers_nothing() -> None:
    assert TransportWriter.of(asyncio.Protocol()) is None
