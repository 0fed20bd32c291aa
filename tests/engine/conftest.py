"""Servers for tests that break them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from machines.engine import Engine
from machines.server import Server
from tests.conftest import program
from tests.engine.builders import publish
from tests.engine.mailing import noter, teller


@pytest.fixture
def program_of_this_run() -> str | None:
    """The server program the suite runs on; None for the wheel's Valkey."""
    return program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))


@pytest.fixture
def own_server(tmp_path, program_of_this_run) -> Iterator[Server]:
    """A server of this test's own, of the kind this run uses; its data is on no disk."""
    with Server(tmp_path / "server", program=program_of_this_run, persistent=False) as server:
        yield server


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
