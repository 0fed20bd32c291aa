"""Makes all Redis clients, so that dangerous defaults are overridden in one place.

redis-py 8 sends a call again when its reply was lost, up to ten times; a step of the engine must never be sent twice on
a guess. Clients made here never retry by themselves; callers that retry send an idempotency key.
"""

from __future__ import annotations

from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from machines.engine.errors import BadInput, EngineUnavailable

SOCKET_TIMEOUT = 5.0  # seconds a call may take: the longest function is far below it
CONNECT_TIMEOUT = 3.0  # seconds: a server on the same network answers in milliseconds
HEALTH_CHECK_INTERVAL = 15  # seconds of idleness after which a connection is tried with PING before use
MAX_CONNECTIONS = 512  # a process of threads seldom has more calls under way
SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")

Client = redis.Redis | redis.RedisCluster

# Everything redis-py raises. The errors of its cluster client are not among its own RedisErrors.
FAILURES = (exceptions.RedisError, exceptions.RedisClusterException, OSError)


def build_options(**overrides: Any) -> dict[str, Any]:
    """Return keyword arguments for any redis-py client. Give an asyncio client its own ``retry``."""
    return {
        "decode_responses": True,
        "encoding_errors": "replace",
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": CONNECT_TIMEOUT,
        "retry": Retry(NoBackoff(), 0),
        "max_connections": MAX_CONNECTIONS,
        "health_check_interval": HEALTH_CHECK_INTERVAL,
    } | overrides


def connect(url: str, **overrides: Any) -> Client:
    """Make a client for ``redis://``, ``rediss://``, ``unix://`` or ``redis+cluster://``.

    It connects on first use; only a cluster is asked for its nodes at once. Raises BadInput, EngineUnavailable.
    """
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise BadInput(
            f"a Redis URL begins with one of {', '.join(SCHEMES)}://, not {scheme[:20] if ':' in url else ''!r}"
        )
    settings = build_options(**overrides)
    if scheme != "unix":
        settings["socket_keepalive"] = True
    try:
        if scheme.endswith("+cluster"):
            return redis.RedisCluster.from_url(url.replace("+cluster", "", 1), **settings)
        return redis.Redis.from_url(url, **settings)
    except ValueError:
        # Neither the URL nor the error about a part of it is shown: a password may stand there.
        why = "its host, port or an option cannot be read (is a / or # in the password written as %2F or %23?)"
        raise BadInput(f"not a Redis URL: {why}") from None
    except FAILURES as error:
        raise EngineUnavailable(f"the cluster cannot be reached: {error}") from error
