"""Sends many calls at once: one round trip on a single server, one for each node of a cluster.

redis-py's own cluster pipeline repeats a call when its connection broke, although the first may have happened. This
module repeats only calls that a node refused because their key lives elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import redis
from redis import exceptions

from .client import FAILURES, Client

Command = Sequence[str | int | bytes]

ELSEWHERE = (exceptions.MovedError, exceptions.AskError, exceptions.TryAgainError)


def send(client: Client, commands: Sequence[tuple[str, Command]]) -> list[Any]:
    """Send commands, given as (key that routes it, words), and return their answers in order.

    An answer is a reply or the error of the server. Raises where a single server is unavailable; on a cluster each call
    to a node that is gone has its error as answer, since the others may have happened.
    """
    if not isinstance(client, redis.RedisCluster):
        return _send_pipeline(client, [words for _, words in commands])
    answers: list[Any] = [None] * len(commands)
    for node, numbers in _group_by_node(client, [key for key, _ in commands]).items():
        replies = _send_to_node(client, node, [commands[n][1] for n in numbers])
        for number, reply in zip(numbers, replies, strict=True):
            answers[number] = reply
    return answers


def send_everywhere(client: Client, words: Command) -> list[Any]:
    """Return the answer of the server, or of each primary of a cluster."""
    if not isinstance(client, redis.RedisCluster):
        return [client.execute_command(*words)]  # type: ignore[no-untyped-call]
    found = client.execute_command(*words, target_nodes=redis.RedisCluster.PRIMARIES)  # type: ignore[no-untyped-call]
    return list(found.values()) if isinstance(found, dict) else [found]


def list_nodes(client: Client) -> list[redis.Redis]:
    """Return a client of the server, or of each primary of a cluster."""
    if not isinstance(client, redis.RedisCluster):
        return [client]
    return [client.get_redis_connection(node) for node in client.get_primaries()]  # type: ignore[no-untyped-call]


def group_by_node(client: Client, keys: Sequence[str]) -> list[list[str]]:
    """Group keys by the server that holds them."""
    if not isinstance(client, redis.RedisCluster):
        return [list(keys)] if keys else []
    return [[keys[n] for n in numbers] for numbers in _group_by_node(client, keys).values()]


def _send_pipeline(client: redis.Redis, commands: Sequence[Command]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for words in commands:
        pipeline.execute_command(*words)  # type: ignore[no-untyped-call]
    replies: list[Any] = pipeline.execute(raise_on_error=False)
    return replies


def _group_by_node(client: redis.RedisCluster, keys: Sequence[str]) -> dict[Any, list[int]]:
    """Return node -> positions of the commands whose keys it holds."""
    nodes: dict[Any, list[int]] = {}
    for number, key in enumerate(keys):
        node = client.get_node_from_key(key)  # type: ignore[no-untyped-call]
        nodes.setdefault(node, []).append(number)
    return nodes


def _send_to_node(client: redis.RedisCluster, node: Any, commands: Sequence[Command]) -> list[Any]:
    try:
        replies = _send_pipeline(client.get_redis_connection(node), commands)
    except FAILURES as error:
        with contextlib.suppress(*FAILURES):
            client.nodes_manager.initialize()
        return [error] * len(commands)
    return [
        _send_redirected(client, words) if isinstance(reply, ELSEWHERE) else reply
        for words, reply in zip(commands, replies, strict=True)
    ]


def _send_redirected(client: redis.RedisCluster, words: Command) -> Any:
    try:
        return client.execute_command(*words)  # type: ignore[no-untyped-call]
    except FAILURES as error:
        return error
