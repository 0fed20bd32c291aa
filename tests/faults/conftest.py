"""A server and workers of a test's own, and the machine they work on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.engine import Engine

from .processes import Workers
from .proxy import Proxy


@pytest.fixture
def lasting_server(tmp_path: Path, program_of_this_run: str | None) -> Iterator[Server]:
    """A server of this test's own that keeps an append-only file."""
    with Server(tmp_path / "server", program=program_of_this_run) as server:
        yield server


@pytest.fixture
def own_engine(own_server: Server) -> Iterator[Engine]:
    engine = Engine.from_url(own_server.url)
    yield engine
    engine.client.close()


@pytest.fixture
def lasting_engine(lasting_server: Server) -> Iterator[Engine]:
    engine = Engine.from_url(lasting_server.url)
    yield engine
    engine.client.close()


@pytest.fixture
def workers(own_server: Server, tmp_path: Path) -> Iterator[Workers]:
    with Workers(own_server.url, tmp_path) as workers:
        yield workers


@pytest.fixture
def proxy(own_server: Server) -> Iterator[Proxy]:
    with Proxy(own_server.url) as proxy:
        yield proxy
