"""The cache of an installation whose Redis is watched by Sentinels follows the master."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from dashboard.serving import cache as site_cache
from dashboard.site import stores
from tests.engine.connection import sentinels
from tests.installation.processes import eventually

pytestmark = [pytest.mark.redis, pytest.mark.faults]


@pytest.fixture
def watched(tmp_path, program_of_this_run, settings):
    with sentinels.running(tmp_path, program_of_this_run) as watched:
        settings.CACHES = stores.caches(watched.url, "t:")
        yield watched
        for client in site_cache._made.values():
            client.close()
        site_cache._made.clear()


def test_the_cache_goes_on_with_the_new_master(watched):
    assert cache.set("k", {"n": 1})
    assert cache.get("k") == {"n": 1}
    master = watched.master()
    with watched.client(master) as client:
        assert client.wait(1, 60_000) == 1
    watched.kill(master)
    eventually(lambda: _get() == {"n": 1}, "the cache answers again")
    assert cache.set("k", {"n": 2})


def _get() -> object:
    try:
        return cache.get("k")
    except Exception:  # of django-redis, or of redis-py: no master yet
        return None
