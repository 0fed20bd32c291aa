"""The key prefix of a process that runs Django's tests, so that they never touch the instances of the installation.

A test database begins at key 1: its rows would move and delete the instances of the real rows. So the engine of a test
process has keys of its own, as Django gives it a database ``test_…`` of its own, and removes them at the end.
"""

import contextlib
import os
import secrets
import sys
from multiprocessing.util import Finalize

import redis

from machines.engine import SignalboxError
from machines.engine.connection.client import connect

LONGEST = 20  # characters of the installation's prefix at the start of the test's: a prefix has 40 at most
_made: dict[tuple[int, str, str], str] = {}


def is_testing() -> bool:
    """Tell whether Django's test environment is set up: by ``manage.py test``, pytest-django, or
    ``setup_test_environment()``."""
    state = getattr(sys.modules.get("django.test.utils"), "_TestState", None)
    return hasattr(state, "saved_data")


def own_prefix(url: str, prefix: str) -> str:
    """Return the prefix of this process in place of ``prefix``: ``shop:`` gives ``shop-test-1f0c…:``. Its keys are
    removed when the process ends; a process that forks gives its children others, as it does with databases."""
    key = (os.getpid(), url, prefix)
    if key not in _made:
        _made[key] = f"{prefix.removesuffix(':')[:LONGEST]}-test-{secrets.token_hex(6)}:"
        Finalize(None, _remove_at_end, args=(url, _made[key]), exitpriority=0)  # atexit is not run in such children
    return _made[key]


def _remove_at_end(url: str, prefix: str) -> None:
    with contextlib.suppress(redis.RedisError, SignalboxError, OSError):  # a server that is down has no keys to remove
        remove_keys(url, prefix)


def remove_keys(url: str, prefix: str) -> None:
    """Remove every key that starts with ``prefix``, and no other."""
    client = connect(url)
    try:
        nodes = client.get_primaries() if isinstance(client, redis.RedisCluster) else [None]
        for node in nodes:
            where = {"target_nodes": node} if node is not None else {}
            for key in list(client.scan_iter(match=f"{prefix}*", count=10_000, **where)):
                client.unlink(key)
    finally:
        client.close()
