"""An engine for many random charts: one prefix for all tests of a module, since hypothesis runs each many times."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from machines.engine import Engine
from tests.conftest import remove

pytest.register_assert_rewrite("tests.engine.interpreter.charts.audits", "tests.engine.interpreter.charts.twin")


@pytest.fixture(scope="module")
def shared(redis_url: str) -> Iterator[Engine]:
    engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
    yield engine
    remove(engine.client, engine.keys.prefix)
    engine.client.close()
