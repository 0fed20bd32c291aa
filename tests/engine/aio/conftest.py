"""AsyncEngines of the loop that a test runs in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from machines.engine import AsyncEngine
from tests.engine.connection.proxies import Relay


@pytest.fixture
async def awaited(redis_url: str, prefix: str) -> AsyncIterator[AsyncEngine]:
    async with AsyncEngine.from_url(redis_url, prefix=prefix) as engine:
        yield engine


@pytest.fixture
def relay(redis_url: str) -> Iterator[Relay]:
    """A relay to the server of this run, on TCP."""
    relay = Relay(redis_url)
    yield relay
    relay.close()


@pytest.fixture
async def relayed(relay: Relay, prefix: str) -> AsyncIterator[AsyncEngine]:
    """An engine whose calls go through the relay."""
    async with AsyncEngine.from_url(relay.url, prefix=prefix) as engine:
        yield engine
