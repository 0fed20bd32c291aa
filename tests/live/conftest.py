"""A hub on the test's own keys, and watchers that show what sockets would be told."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis

from dashboard.live.hub.hub import Hub
from dashboard.live.limits import Limits
from dashboard.live.topics import parse
from dashboard.site import stores
from machines.engine import Engine
from machines.engine.keys import Keys
from tests.configuration import configure
from tests.conftest import remove

from .builders import GATE, SHIFT, Screen
from .service import Service

#: a reconcile that no test waits for: what shows up before it came by a hint
NEVER = 60.0
PATIENCE = 60.0  # seconds until a test gives up; what is waited for takes milliseconds


class Watcher:
    """A socket's side of a hub."""

    def __init__(self, hub: Hub) -> None:
        outbox = hub.enter()
        assert outbox is not None
        self.hub, self.outbox, self.screen = hub, outbox, Screen()
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._show())

    async def _show(self) -> None:
        while True:
            self.screen.show(await self.outbox.next())
            self._news.set()

    def watch(self, *topics: str) -> None:
        for topic in topics:
            self.hub.subscribe(self.outbox, parse(topic))

    async def until(self, holds: Callable[[Screen], Any]) -> None:
        """Waits until the screen is as wanted."""

        async def wait() -> None:
            while not holds(self.screen):
                self._news.clear()
                await self._news.wait()

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except TimeoutError:
            pytest.fail(f"the screen never came to show it: {self.screen.values} {self.screen.states}")

    async def sees(self, topic: str, **expected: Any) -> dict[str, Any]:
        """Waits for a value that has these parts."""

        def shown(screen: Screen) -> bool:
            value = screen.values.get(topic)
            return value is not None and all(value.get(name) == part for name, part in expected.items())

        await self.until(shown)
        return self.screen.values[topic]

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for topic in list(self.screen.values):
            self.hub.unsubscribe(self.outbox, parse(topic))
        await self.hub.exit(self.outbox)


async def eventually(holds: Callable[[], bool]) -> None:
    """For what tells nobody when it happens."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
async def make_hub(prefix: str, redis_url: str) -> AsyncIterator[Callable[..., Hub]]:
    """A hub with other limits than usual."""

    def make(url: str = redis_url, **limits: Any) -> Hub:
        return Hub(url, Keys(prefix), Limits(**{"reconcile": NEVER, "reconcile_without_hints": NEVER} | limits))

    return make


@pytest.fixture
async def watch(make_hub: Callable[..., Hub]) -> AsyncIterator[Callable[..., Watcher]]:
    """``watch("machine:gate", hub=hub)``: a watcher of these topics; it leaves at the end of the test."""
    watchers: list[Watcher] = []

    def start(*topics: str, hub: Hub | None = None, **limits: Any) -> Watcher:
        watcher = Watcher(hub or make_hub(**limits))
        watchers.append(watcher)
        watcher.watch(*topics)
        return watcher

    yield start
    for watcher in watchers:
        await watcher.leave()


@pytest.fixture
def gate(engine: Engine) -> Engine:
    """The engine with machines `gate` and `shift`, and an instance `north` of each."""
    for definition in (GATE, SHIFT):
        engine.publish(definition)
        engine.create(definition["id"], "north")
    return engine


@pytest.fixture(scope="package")
def lasting(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One site in a process of its own for all tests here; impatient with clients that do not read."""
    prefix = f"t{secrets.token_hex(4)}:"
    service = Service(redis_url, prefix, tmp_path_factory.mktemp("lasting"), send_deadline=1.0, close_grace=30.0)
    yield service
    service.stop()
    with redis.Redis.from_url(redis_url) as client:
        for pattern in (prefix, stores.web_prefix(prefix)):
            remove(client, pattern)


@pytest.fixture
def prefix(prefix: str, request: pytest.FixtureRequest, settings: Any) -> Iterator[str]:
    """The prefix of the site for a test of it, empty at the start of each; other tests have one of their own."""
    if "service" not in request.fixturenames:
        yield prefix
        return
    shared = request.getfixturevalue("lasting").prefix
    configure(settings, PREFIX=shared)
    yield shared
    remove(request.getfixturevalue("cleaner"), shared)


@pytest.fixture
def service(lasting: Service, prefix: str) -> Service:
    """The site on the test's keys; one that a test before stopped runs again."""
    if lasting.process.poll() is not None:
        lasting.stop()
        lasting.start()
    return lasting
