"""Makes all Redis clients, so that dangerous defaults are overridden in one place, and asks their shards for a sign of
life.

redis-py 8 sends a call again when its reply was lost, up to ten times; a step of the engine must never be sent twice on
a guess. Clients made here never retry by themselves; callers that retry send an idempotency key.
"""

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry
from redis.sentinel import Sentinel

from machines.engine.errors import BadInput, EngineUnavailable, NotPermitted

from . import server_permissions
from .redis_url import RedisURL, check_scheme, read_url

SOCKET_TIMEOUT = 5.0  # seconds a call may take: the longest function is far below it
CONNECT_TIMEOUT = 3.0  # seconds: a server on the same network answers in milliseconds
HEALTH_CHECK_INTERVAL = 15  # seconds of idleness after which a connection is tried with PING before use
SEEDS = "signalbox_seeds"  # attribute of a cluster client: the seeds of its URL
MAX_CONNECTIONS = 512  # a process of threads seldom has more calls under way
SLOTS = 16384
AT_ONCE = 16  # shards asked at the same time
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
    """Make a client for a Redis URL of any scheme (``redis_url``).

    It connects on first use; only a cluster is asked for its nodes at once. Raises BadInput, EngineUnavailable,
    NotPermitted.
    """
    scheme = check_scheme(url)
    settings = build_options(**overrides)
    if scheme != "unix":
        settings["socket_keepalive"] = True
    try:
        if scheme.endswith("+cluster"):
            return _connect_cluster(read_url(url), settings)
        if scheme.endswith("+sentinel"):
            return _connect_sentinel(read_url(url), settings)
        return redis.Redis.from_url(url, **settings)
    except ValueError:
        # Neither the URL nor the error about a part of it is shown: a password may stand there.
        why = "its host, port or an option cannot be read (is a / or # in the password written as %2F or %23?)"
        raise BadInput(f"not a Redis URL: {why}") from None
    except exceptions.NoPermissionError as error:
        raise NotPermitted([named] if (named := server_permissions.find_missing(str(error))) else []) from error
    except FAILURES as error:
        if _lacks_topology(scheme, url, settings):
            raise NotPermitted(["cluster|slots"]) from error
        raise EngineUnavailable(f"the cluster cannot be reached: {error}") from error


def _lacks_topology(scheme: str, url: str, settings: Mapping[str, Any]) -> bool:
    """Tell whether the account may not ask a seed for the nodes: redis-py then says that it is no cluster."""
    if not scheme.endswith("+cluster"):
        return False
    read = read_url(url)
    for host, port in read.seeds:
        client = redis.Redis(host=host, port=port, **{**settings, **read.account_options})
        try:
            client.execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
        except exceptions.NoPermissionError:
            return True
        except FAILURES:
            continue
        finally:
            client.close()
    return False


def _connect_cluster(url: RedisURL, settings: Mapping[str, Any]) -> redis.RedisCluster:
    """Ask the seeds, one after the other, for the nodes of the cluster; any seed that answers suffices.

    Slots that no node serves do not keep the client from the others.
    """
    node: Any = ClusterNode
    seeds = [node(host, port) for host, port in url.seeds]
    options = {"require_full_coverage": False} | dict(settings) | url.account_options
    client = redis.RedisCluster(startup_nodes=seeds, **options)
    setattr(client, SEEDS, url.seeds)
    return client


def _connect_sentinel(url: RedisURL, settings: Mapping[str, Any]) -> redis.Redis:
    """Make a client that asks the Sentinels for the master before each new connection."""
    asked = {name: settings[name] for name in ("retry", "socket_connect_timeout", "socket_keepalive")}
    asked |= {"socket_timeout": settings["socket_connect_timeout"], "decode_responses": True}
    make: Any = Sentinel
    client: redis.Redis = make(list(url.seeds), sentinel_kwargs=asked | url.watcher_options).master_for(
        url.service, **dict(settings) | url.account_options
    )
    return client


@dataclass(frozen=True, slots=True)
class Shard:
    """``slots`` are ranges as in ``0-5460``, several with a comma; "" for a single server. ``answers``: whether its
    primary does."""

    slots: str
    answers: bool


def probe_shards(client: Client) -> list[Shard]:
    """Ask the server, or each primary of a cluster at the same time, for a sign of life.

    Slots that no node serves are a shard that does not answer. After a failure the nodes of the cluster are read anew,
    so that the next look sees who took over.
    """
    if not isinstance(client, redis.RedisCluster):
        return [Shard("", _answers(client))]
    owners = list_owners(client)
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(owners)), thread_name_prefix="shards") as threads:
        answers = threads.map(lambda node: _answers_at(client, node), owners)
        found = [Shard(slots, alive) for slots, alive in zip(owners.values(), answers, strict=True)]
    if not all(shard.answers for shard in found):
        with contextlib.suppress(*FAILURES):
            client.nodes_manager.initialize()
    return found


def list_owners(client: redis.RedisCluster) -> dict[Any, str]:
    """Return primary -> its ranges of slots, as this process knows them; None -> slots that no node serves."""
    held: Any = client.nodes_manager.slots_cache
    ranges: dict[Any, list[str]] = {}
    for owner, slots in groupby(range(SLOTS), key=lambda slot: held[slot][0] if held.get(slot) else None):
        numbers = list(slots)
        ranges.setdefault(owner, []).append(f"{numbers[0]}-{numbers[-1]}")
    return {owner: ",".join(each) for owner, each in ranges.items()}


def _answers_at(client: redis.RedisCluster, node: Any) -> bool:
    if node is None:
        return False
    try:
        connection = client.get_redis_connection(node)
    except FAILURES:
        return False
    return _answers(connection)


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except exceptions.NoPermissionError:  # a server that refuses the account is there
        return True
    except FAILURES:
        return False
