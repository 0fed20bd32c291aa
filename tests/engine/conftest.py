"""Engines for tests that break their server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from machines.engine import Engine

from .builders import publish
from .messages.mailing import noter, teller


@pytest.fixture
def own_engine(own_server) -> Iterator[Engine]:
    engine = Engine.from_url(own_server.url)
    yield engine
    engine.client.close()


@pytest.fixture
def many(engine, redis_url, prefix):
    """An engine whose machines have four partitions."""
    spread = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    yield spread
    spread.client.close()


@pytest.fixture
def pair(engine):
    """A teller ``t`` and the noters ``x`` and ``y``."""
    publish(engine, noter(), "x", "y")
    publish(engine, teller(), "t")
    return engine
