"""Engines for tests that break their server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from machines.engine import Engine

from .aio.awaited import AwaitedEngine
from .builders import publish
from .messages.mailing import noter, teller

THREADS, ASYNCIO = "threads", "asyncio"
ENGINES = [THREADS, pytest.param(ASYNCIO, marks=pytest.mark.async_engine)]
INSTANCES = (
    "bulk_reads", "create", "delete", "explain", "fire", "fire_many", "force", "history", "idempotency", "inspect",
    "permits", "repairs", "retirement", "suspend", "unchanged",
)  # fmt: skip
SEARCH = ("counts", "find", "find_facts", "find_indexed", "survey")
JOBS = (
    "jobs", "batches", "leases", "queue_attempts", "queue_enqueue", "queue_limits", "queue_operations", "queue_stats",
)  # fmt: skip
MESSAGES = ("mail", "delivery", "timers")
CONTRACT = {"test_publish", "test_errors"} | {
    f"{folder}.test_{name}"
    for folder, names in {"instances": INSTANCES, "search": SEARCH, "jobs": JOBS, "messages": MESSAGES}.items()
    for name in names
}
"""Modules with tests of the public contract: they run on both engines."""
ENGINE_ONLY = ("process", "as_the_single_calls_say", "callers_make_one_step", "breaches_follow_the_clock")
"""Parts of the names of their tests that run on ``Engine`` alone: they start processes or count its round trips."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of the contract with ``Engine``, and once more with ``AsyncEngine``, whose tests are in ``aio``."""
    module = metafunc.module.__name__.partition("tests.engine.")[2]
    alone = any(part in metafunc.function.__name__ for part in ENGINE_ONLY)
    if "engine" in metafunc.fixturenames and module in CONTRACT and not alone:
        metafunc.parametrize("engine", ENGINES, indirect=True)


@pytest.fixture
def engine(redis_url: str, prefix: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine on this test's prefix; for a test of the contract also an AsyncEngine, with the same calls."""
    engine = Engine.from_url(redis_url, prefix=prefix)
    if getattr(request, "param", THREADS) == THREADS:
        yield engine
    else:
        awaited = AwaitedEngine(redis_url, engine, prefix=prefix)
        yield awaited  # type: ignore[misc]
        awaited.close()
    engine.client.close()


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
