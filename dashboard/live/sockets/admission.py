"""Admits or refuses a websocket before it is opened: its origin, connection attempts of its address, open sockets of
its address and session. Limits the topics and commands of those that are open.

This happens before any call to Redis or the database. An address that connects too often gets a 403 instead of the
handshake, which costs least; a socket over the limit is closed with a code, which a page can read.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

from dashboard.live.limits import Limits, limits
from dashboard.live.messages import CloseCode
from dashboard.shared.addresses import caller_of
from dashboard.shared.concurrency_limits import PerLoop
from machines.people.client_address import network_of


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


DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}


class SameOrigin:
    """Lets a websocket through when its origin is ours; else opens and closes it with 4403, so the page can tell."""

    def __init__(self, application: Callable[..., Awaitable[Any]]) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> Any:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope.get("headers", [])}
        if allows(headers.get(b"origin", ""), headers.get(b"host", ""), scope.get("scheme", "ws")):
            return await self.application(scope, receive, send)
        await send({"type": "websocket.accept"})
        return await send({"type": "websocket.close", "code": int(CloseCode.BAD_ORIGIN), "reason": "bad origin"})


def allows(origin: str, host: str, scheme: str) -> bool:
    """Return whether a page of ``origin`` may open a websocket (``scheme`` ws or wss) at ``host``."""
    try:
        parts = urlsplit(origin)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    return _is_host(parts.scheme, parts.netloc, scheme, host) or _is_trusted(parts.scheme, parts.netloc)


def _is_host(origin_scheme: str, netloc: str, scheme: str, host: str) -> bool:
    domain, port = split_domain_port(host)
    allowed = settings.ALLOWED_HOSTS or [".localhost", "127.0.0.1", "[::1]"]
    if not domain or not validate_host(domain, allowed):
        return False
    origin_domain, origin_port = split_domain_port(netloc)
    # A proxy that ends TLS may hand the request on as ws: the scheme then says nothing, the host still does.
    return (origin_domain, origin_port or DEFAULT_PORTS[origin_scheme]) == (
        domain,
        port or (DEFAULT_PORTS[origin_scheme] if settings.SECURE_PROXY_SSL_HEADER else DEFAULT_PORTS.get(scheme, "80")),
    )


def _is_trusted(scheme: str, netloc: str) -> bool:
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        parts = urlsplit(trusted)
        if parts.scheme == scheme and is_same_domain(netloc.lower(), parts.netloc.lstrip("*").lower()):
            return True
    return False


KNOWN = (
    10_000  # addresses and people that are remembered; of those who have not come for long all is there again anyway
)


class Person:
    """What one person has open in this process, in all windows."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.sockets = self.topics = 0
        self.commands = CommandRateLimit(limits.commands_of_person, limits.commands_of_person_per_second, clock)


class Quotas:
    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._attempts: dict[str, CommandRateLimit] = {}
        self._addresses: Counter[str] = Counter()
        self._sessions: Counter[str] = Counter()
        self._people: dict[str, Person] = {}

    def attempt(self, address: str) -> bool:
        """Count an attempt to connect; return False if there were too many."""
        budget = self._attempts.get(address)
        if budget is None:
            if len(self._attempts) >= KNOWN:
                self._attempts.clear()
            budget = self._attempts[address] = CommandRateLimit(
                self._limits.connects, self._limits.connects_per_second, self._clock
            )
        return budget.spend(1)

    def enter(self, address: str, session: str) -> bool:
        """Count a connection of an address, with the session it shows; return False if either has reached its limit."""
        limits = self._limits
        if self._addresses[address] >= limits.sockets_per_address:
            return False
        if session and self._sessions[session] >= limits.sockets_per_person:
            return False
        self._addresses[address] += 1
        self._sessions[session] += 1
        return True

    def exit(self, address: str, session: str) -> None:
        for counter, key in ((self._addresses, address), (self._sessions, session)):
            counter[key] -= 1
            if counter[key] <= 0:
                del counter[key]

    def greet(self, who: str) -> Person | None:
        """Count one more socket of a person; return None if they have reached their limit."""
        person = self._people.get(who)
        if person is None:
            if len(self._people) >= KNOWN:
                self._people = {who: one for who, one in self._people.items() if one.sockets}
            person = self._people[who] = Person(self._limits, self._clock)
        if person.sockets >= self._limits.sockets_per_person:
            return None
        person.sockets += 1
        return person

    @staticmethod
    def part(person: Person) -> None:
        """Remove a socket of the person. What they spent on commands is remembered, so that another socket gains
        nothing."""
        person.sockets -= 1


class CommandRateLimit:
    """Holds ``capacity`` at first and at most; ``refill`` comes back each second."""

    def __init__(self, capacity: float, refill: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._refill = refill
        self._clock = clock
        self._left = capacity
        self._seen = clock()

    def spend(self, cost: float) -> bool:
        """Take the cost; return False when there was not enough, and then nothing is left."""
        now = self._clock()
        self._left = min(self._capacity, self._left + (now - self._seen) * self._refill)
        self._seen = now
        enough = self._left >= cost
        self._left = max(0.0, self._left - cost)
        return enough


quotas = PerLoop(lambda: Quotas(limits()))
"""Returns the quotas of the running event loop."""
