"""Servers for tests that break them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from machines.engine import Engine
from machines.server import Server
from tests.conftest import program


@pytest.fixture
def own_server(tmp_path) -> Iterator[Server]:
    """A server of this test's own, of the kind this run uses; its data is on no disk."""
    with Server(
        tmp_path / "server", program=program(os.environ.get("SIGNALBOX_TEST_SERVER", "")), persistent=False
    ) as s:
        yield s


@pytest.fixture
def own_engine(own_server) -> Iterator[Engine]:
    engine = Engine.from_url(own_server.url)
    yield engine
    engine.client.close()
