"""A server of their own for these tests, with the site on it for what comes in over HTTP and websockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.site import stores
from tests.configuration import configure

from .payloads import MACHINE
from .site import HOST, PREFIX, furnished
from .stage import Stage, stage


@pytest.fixture(scope="module")
def server(program_of_this_run: str | None) -> Iterator[Stage]:
    with stage(program_of_this_run) as found:
        yield found


@pytest.fixture
def sited(server: Stage, settings, transactional_db: None) -> Iterator[Stage]:
    """The same with Django on it."""
    configure(settings, REDIS_URL=server.server.url, PREFIX=PREFIX)
    settings.CACHES = stores.caches(server.server.url, PREFIX)
    settings.ALLOWED_HOSTS = [HOST]
    server.fresh()
    server.site = furnished(MACHINE)
    yield server
    server.site = None
