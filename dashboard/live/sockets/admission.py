"""Admits or refuses a websocket before it is opened: connection attempts of its address, open sockets of its address
and session.

This happens before any call to Redis or the database. An address that connects too often gets a 403 instead of the
handshake, which costs least; a socket over the limit is closed with a code, which a page can read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.live.messages import CloseCode
from dashboard.shared.addresses.callers import caller_of
from machines.people.limits import network_of

from .quotas import quotas


class SocketAdmission:
    def __init__(self, application: Callable[..., Awaitable[Any]]) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> Any:
        address = network_of((scope.get("client") or ("",))[0])
        session = caller_of(scope.get("headers", ()))
        here = quotas()
        if not here.attempt(address):
            return await send({"type": "websocket.close", "code": int(CloseCode.TOO_MANY)})  # before it is accepted
        if not here.enter(address, session):
            await send({"type": "websocket.accept"})
            return await send({"type": "websocket.close", "code": int(CloseCode.TOO_MANY)})
        try:
            return await self.application(scope, receive, send)
        finally:
            here.exit(address, session)
