"""Middleware: gives each request an id, which stands in ``X-Request-Id``, in log lines, in the audit and on error
pages.

Ids come from the generator this process shares with its engine, whose ranges are taken in a thread beside: no request
waits for one, and none fails for want of one. Before the first range is there, and while Redis is away, an id is made
of the clock and chance, and begins with ``z`` to say so.
"""

import os
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.shared.async_middleware import WrappingMiddleware
from machines.audit.request_context import given_id, request_id
from machines.connections import engine_at_hand, get_engine
from machines.engine import SignalboxError
from machines.engine.ids import END, EPOCH, RANDOM_BITS, encode_local

HEADER = "X-Request-Id"
GIVEN = re.compile(r"[A-Za-z0-9._:/+=@-]{1,64}", re.ASCII)
REST = 1.0  # seconds between two tries to take a range while that fails


class Ids:
    """``take`` never calls Redis and never waits for it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Set up the state of a new process: a child does not have its parent's threads."""
        self._at_it = threading.Lock()
        self._not_before = 0.0

    def take(self) -> str:
        engine = engine_at_hand()
        made = engine.ids.next_local() if engine else None
        if engine is None or made is None or engine.ids.is_due():
            self._take_beside()
        return made or _make_local()

    def _take_beside(self) -> None:
        if time.monotonic() < self._not_before or not self._at_it.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._take_range, args=(self._at_it,), name="request ids", daemon=True).start()
        except RuntimeError:  # no further thread: the process ends, or is full
            self._at_it.release()

    def wait(self) -> None:
        """Wait until no thread takes a range, as before its connections are closed."""
        with self._at_it:
            pass

    def _take_range(self, held: threading.Lock) -> None:
        try:
            if not get_engine().ids.renew_ahead():
                self._not_before = time.monotonic() + REST
        except SignalboxError:
            self._not_before = time.monotonic() + REST
        finally:
            held.release()


ids = Ids()
os.register_at_fork(after_in_child=ids.begin)


def _make_local() -> str:
    now = min(max(int(time.time() * 1000), EPOCH), END - 1)
    return encode_local(now, secrets.randbits(RANDOM_BITS))


@contextmanager
def name_request(given: str) -> Iterator[str]:
    """Run the block for a request. Yield its id. ``given``: what its sender calls it, dropped unless it is a plain
    word."""
    made = ids.take()
    ours, theirs = request_id.set(made), given_id.set(given if GIVEN.fullmatch(given) else "")
    try:
        yield made
    finally:
        request_id.reset(ours)
        given_id.reset(theirs)


def _mark(request: HttpRequest) -> None:
    """Set the ids on the request, because Django logs the answer after the block, and its line names the request."""
    for kept in (request_id, given_id):
        setattr(request, kept.name, kept.get())


class RequestIds(WrappingMiddleware):
    """Outermost of the middleware, so that whatever answers is named."""

    @contextmanager
    def wrap(self, request: HttpRequest) -> Iterator[Callable[[HttpResponse], HttpResponse]]:
        with name_request(request.headers.get(HEADER, "")) as made:
            _mark(request)
            yield partial(_add_header, made)


def _add_header(made: str, response: HttpResponse) -> HttpResponse:
    response[HEADER] = made
    return response


class SocketIds:
    """Does the same for a websocket: one id from its handshake to its end, sent in the answer to the handshake."""

    def __init__(self, application: Callable[..., Awaitable[Any]]) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> Any:
        given = dict(scope.get("headers", ())).get(HEADER.lower().encode(), b"").decode("latin-1")
        with name_request(given) as made:

            async def add_header(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "websocket.accept":
                    headers = [*message.get("headers", ()), (HEADER.lower().encode(), made.encode())]
                    message = {**message, "headers": headers}
                await send(message)

            return await self.application(scope, receive, add_header)
