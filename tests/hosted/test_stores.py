"""Sessions and caches of every kind that Django and django-redis have carry a login, a page, and what counts once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import run

pytestmark = pytest.mark.faults  # real processes
SESSIONS = ["db", "file", "signed_cookies", "cache", "cached_db"]
CACHES = {
    "locmem": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "dummy": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
    "filebased": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "{folder}"},
    "redis": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": "{redis}",
        "KEY_PREFIX": "{prefix}",
    },
    "django-redis": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "{redis}", "KEY_PREFIX": "{prefix}"},
}
SCRIPT = """
import json, sys
import django
django.setup()
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

found = {}
for name, settings in json.loads(sys.argv[1]).items():
    with override_settings(**settings):
        client = Client(SERVER_NAME="localhost")
        client.force_login(get_user_model().objects.get(username="boss"))
        page = client.get("/ops/machines/activation/")
        path, body = "/ops/api/v1/machines/activation/instances", json.dumps({"id": name})
        asked = {"content_type": "application/json", "headers": {"Idempotency-Key": name}}
        made = [client.post(path, body, **asked) for _ in range(2)]
        ready = client.get("/ops/readyz")
        found[name] = [page.status_code, *(one.status_code for one in made), ready.status_code]
print(json.dumps(found))
"""


@pytest.fixture
def kinds(shop: dict[str, str], tmp_path: Path) -> dict[str, dict]:
    words = {"redis": shop["SHOP_REDIS"], "prefix": shop["SHOP_PREFIX"], "folder": str(tmp_path)}
    caches = {
        name: {option: value.format(**words) for option, value in options.items()} for name, options in CACHES.items()
    }
    found = {f"cache-{name}": {"CACHES": {"default": options}} for name, options in caches.items()}
    found |= {f"sessions-{name}": {"SESSION_ENGINE": f"django.contrib.sessions.backends.{name}"} for name in SESSIONS}
    return found | {"sessions-on-django-redis": found["cache-django-redis"] | found["sessions-cache"]}


def test_each_kind_carries_a_login_and_what_counts_once(shop: dict[str, str], kinds: dict[str, dict]):
    said = run(shop, "-c", SCRIPT, json.dumps(kinds))
    found = json.loads(said.splitlines()[-1])
    assert found == {name: [200, 201, 201, 200] for name in kinds}
