"""The entry of every HTTP request: answers at once, passes it on to Django when a slot is free, or refuses it.

A body is bounded before it is read, and read before the request gets its turn, so that a slow sender holds no place.
The place is given back when the answer begins, so that a slow reader holds none either.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dashboard.shared.addresses import Headers, caller_of
from dashboard.shared.concurrency_limits import ConcurrencyLimits, Crowded, PerLoop, Slots, Turn, under
from dashboard.shared.errors.statuses import BUSY, CROWDED, TOO_LARGE
from machines.people.client_address import network_of

from .event_loop_views import EventLoopHandler, Refusal, Scope

MOST = 3 * 1024 * 1024  # bytes of a body; Django takes 2.5 MB that are no file
MAX_WAIT = 10.0  # seconds that a request waits for its turn
GONE = {"type": "http.disconnect"}
LARGE = Refusal(TOO_LARGE, f"A request has at most {MOST // 1024 // 1024} MiB.")
MANY = Refusal(CROWDED, "More requests of yours are under way, or wait, than may at a time.", 1)
FULL = Refusal(BUSY, "The site has more to do than it can do at the moment.", 5)
Message = MutableMapping[str, Any]
Application = Callable[[Any, Any, Any], Awaitable[Any]]


class Admission:
    """``room``: of each event loop, and so of each process."""

    def __init__(self, django: Application, light: EventLoopHandler, room: Slots) -> None:
        self._django, self._light = django, light
        self._get_gate = PerLoop(lambda: ConcurrencyLimits(room))

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if self._light.takes(scope):
            await self._light(scope, receive, send)
            return
        passage = Passage(self._get_gate(), scope, receive, send)
        if passage.refusal is None:
            under.set(passage.comes)
            try:
                await self._django(scope, passage.receive, passage.send)
            finally:
                passage.end()
        if passage.refusal is not None:
            await self._light.refuse(scope, send, passage.refusal)


class Passage:
    """One request on its way: what Django reads and writes goes through here."""

    def __init__(self, gate: ConcurrencyLimits, scope: Scope, receive: Any, send: Any) -> None:
        self._gate, self._receive, self._send = gate, receive, send
        self._address = network_of((scope.get("client") or ("",))[0])
        self._caller = caller_of(scope["headers"])
        self.comes = (gate, self._address, self._caller)
        self._size = 0
        self._turn: Turn | None = None
        self._ahead: asyncio.Task[Message] | None = None  # what comes after the body, asked for while it waited
        self.refusal = LARGE if _read_length(scope["headers"]) > MOST else None

    async def receive(self) -> Message:
        """Receive the next part. The body's last part comes when the request has its turn. To Django, a refused request
        looks like one whose client left."""
        if self._turn is not None:
            return await self._receive_later()
        message: Message = await self._receive()
        if message["type"] != "http.request":
            return message
        self._size += len(message.get("body", b""))
        if self._size > MOST:
            self.refusal = LARGE
            return GONE
        return message if message.get("more_body") or await self._wait_for_turn() else GONE

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._leave()
        await self._send(message)

    def end(self) -> None:
        self._leave()
        if self._ahead is not None:
            self._ahead.cancel()

    async def _receive_later(self) -> Message:
        ahead, self._ahead = self._ahead, None
        return await (ahead if ahead is not None else self._receive())

    async def _wait_for_turn(self) -> bool:
        """Wait for the turn. Return whether it has come; False as well once the client is gone."""
        try:
            self._turn = self._gate.enter(self._address, self._caller)
        except Crowded as error:
            self.refusal = MANY if error.own else FULL
            return False
        if self._turn.granted.done():
            return True
        self._ahead = asyncio.ensure_future(self._receive())
        await asyncio.wait((self._turn.granted, self._ahead), timeout=MAX_WAIT, return_when=asyncio.FIRST_COMPLETED)
        if not self._turn.granted.done() and not self._ahead.done():
            self.refusal = FULL
        return self._turn.granted.done()

    def _leave(self) -> None:
        if self._turn is not None:
            self._turn.leave()


def _read_length(headers: Headers) -> int:
    """Return the length that a request says its body has."""
    length = dict(headers).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0
