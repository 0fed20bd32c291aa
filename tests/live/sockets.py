"""A browser's end of a socket, signed in or not, on the site's real ASGI stack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.live.messages import Frame
from dashboard.live.outbox import EXTENSION
from machines.people.permissions import RIGHTS

from .builders import Screen

PATIENCE = 60.0


def make_user(name: str, *rights: str) -> User:
    user = User.objects.create_user(name, password="x")
    codenames = [RIGHTS[right].partition(".")[2] for right in rights]
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="machines", codename__in=codenames))
    return user


def sign_in(user: User) -> str:
    """The cookie of a fresh session."""
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


async def visitor(name: str, *rights: str) -> tuple[User, str]:
    """A user with these rights, and the session cookie."""
    user = await database_sync_to_async(make_user)(name, *rights)
    return user, await database_sync_to_async(sign_in)(user)


class QueueWriter:
    """The extension of the site's server, on the queue of a socket."""

    def __init__(self, frames: asyncio.Queue[dict[str, Any]]) -> None:
        self._frames = frames

    def is_ready(self) -> bool:
        return not self._frames.full()

    def write(self, frame: Frame) -> None:
        assert frame.wire.endswith(frame.encode())
        self._frames.put_nowait({"type": "websocket.send", "text": frame, "direct": True})


class Socket(ApplicationCommunicator):
    """Shows what it gets on a `Screen`; remembers the close code. Channels' own communicator comes with Daphne only.

    ``room``: frames it takes without anybody looking at them; 0 is any number. A real connection has buffers, too.
    ``address``: where it comes from. ``direct``: whether the server lets frames be written to it at once, as the site's
    own does.
    """

    def __init__(
        self, cookie: str = "", *, origin: str = "http://testserver", room: int = 0, address: str = "",
        authorization: str = "", direct: bool = False,
    ) -> None:  # fmt: skip
        from dashboard.asgi import application

        headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
        if cookie:
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
        if authorization:
            headers.append((b"authorization", authorization.encode()))
        scope = {"type": "websocket", "path": "/ws/live/", "query_string": b"", "headers": headers, "subprotocols": []}
        scope |= {"client": (address, 1)} if address else {}
        frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue(room)
        scope |= {"extensions": {EXTENSION: QueueWriter(frames)}} if direct else {}
        super().__init__(application, scope)
        self._output_queue = frames
        self.direct = 0  # frames that came by the extension
        self.screen = Screen()
        self.closed: int | None = None

    async def connect(self) -> None:
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(PATIENCE))["type"] == "websocket.accept"

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(PATIENCE)

    async def send(self, frame: str | bytes) -> None:
        await self.send_input({"type": "websocket.receive", "text" if isinstance(frame, str) else "bytes": frame})

    async def say(self, kind: str, topic: str) -> None:
        await self.send(json.dumps({"type": kind, "topic": topic}))

    async def subscribe(self, *topics: str) -> None:
        for topic in topics:
            await self.say("subscribe", topic)

    async def step(self) -> dict[str, Any]:
        """The next frame, shown."""
        message = await self.receive_output(PATIENCE)
        if message["type"] == "websocket.close":
            self.closed = message.get("code")
            return {"type": "close"}
        self.direct += message.get("direct", False)
        return self.screen.show(message["text"])

    async def until(self, holds: Callable[[Screen], Any]) -> None:
        def is_held() -> bool:
            try:
                return bool(holds(self.screen))
            except KeyError:  # nothing of a topic has come yet
                return False

        async def wait() -> None:
            while not is_held():
                assert self.closed is None, f"closed with {self.closed}"
                await self.step()

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except TimeoutError:
            pytest.fail(f"the screen never came to show it: {self.screen.values} {self.screen.frames[-3:]}")

    async def sees(self, topic: str, **expected: Any) -> dict[str, Any]:
        def shown(screen: Screen) -> bool:
            value = screen.values.get(topic)
            return value is not None and all(value.get(name) == part for name, part in expected.items())

        await self.until(shown)
        return self.screen.values[topic]

    async def error(self) -> dict[str, Any]:
        """The next error frame."""
        seen = len(self.screen.frames)
        await self.until(lambda screen: any(frame["type"] == "error" for frame in screen.frames[seen:]))
        return self.screen.frames[-1]

    async def end(self) -> int | None:
        """Waits for the close; its code."""
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                await self.step()
        return self.closed
