"""Lists the shards of a cluster, and asks each for a sign of life."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from redis import RedisCluster
from redis.exceptions import NoPermissionError

from .client import FAILURES, Client

SLOTS = 16384
AT_ONCE = 16  # shards asked at the same time


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
    if not isinstance(client, RedisCluster):
        return [Shard("", _answers(client))]
    owners = list_owners(client)
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(owners)), thread_name_prefix="shards") as threads:
        answers = threads.map(lambda node: _answers_at(client, node), owners)
        found = [Shard(slots, alive) for slots, alive in zip(owners.values(), answers, strict=True)]
    if not all(shard.answers for shard in found):
        _read_nodes_anew(client)
    return found


def list_owners(client: RedisCluster) -> dict[Any, str]:
    """Return primary -> its ranges of slots, as this process knows them; None -> slots that no node serves."""
    held: Any = client.nodes_manager.slots_cache
    ranges: dict[Any, list[str]] = {}
    for owner, slots in groupby(range(SLOTS), key=lambda slot: held[slot][0] if held.get(slot) else None):
        numbers = list(slots)
        ranges.setdefault(owner, []).append(f"{numbers[0]}-{numbers[-1]}")
    return {owner: ",".join(each) for owner, each in ranges.items()}


def _answers_at(client: RedisCluster, node: Any) -> bool:
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
    except NoPermissionError:  # a server that refuses the account is there
        return True
    except FAILURES:
        return False


def _read_nodes_anew(client: RedisCluster) -> None:
    try:
        client.nodes_manager.initialize()
    except FAILURES:
        return
