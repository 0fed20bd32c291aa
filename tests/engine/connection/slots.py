"""Moves slots between nodes of a cluster: key by key, as ``redis-cli --cluster reshard`` does, and at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import redis

from tests.installation.processes import eventually

from .clusters import Node

BATCH = 10  # keys of a MIGRATE, as redis-cli has it


def find_owner(nodes: list[Node], slot: int) -> int:
    """The position of the node that serves a slot."""
    with nodes[0].client() as client:
        for first, last, (_, port, *_), *_ in client.execute_command("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return [node.port for node in nodes].index(port)
    raise AssertionError(f"nobody serves {slot}")


@contextlib.contextmanager
def moving(nodes: list[Node], slot: int) -> Iterator[tuple[Node, Node]]:
    """The slot is on its way from its owner (source) to the next node (target), with no key moved; afterwards it
    arrives there."""
    source, target = _choose(nodes, slot)
    begin(slot, source, target)
    try:
        yield source, target
    finally:
        move_keys(slot, source, target)
        finish(nodes, slot, target)


def _choose(nodes: list[Node], slot: int, target: Node | None = None) -> tuple[Node, Node]:
    owner = find_owner(nodes, slot)
    return nodes[owner], target or nodes[(owner + 1) % len(nodes)]


def begin(slot: int, source: Node, target: Node) -> None:
    with source.client() as old, target.client() as new:
        new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", old.execute_command("CLUSTER", "MYID"))
        old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", new.execute_command("CLUSTER", "MYID"))


def move_keys(slot: int, source: Node, target: Node, most: int | None = None) -> int:
    """Move the keys of a slot in batches; ``most``: so many at most. Returns how many were moved."""
    moved = 0
    with source.client() as old:
        while keys := old.execute_command("CLUSTER", "GETKEYSINSLOT", slot, BATCH):
            old.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            moved += len(keys)
            if most is not None and moved >= most:
                break
    return moved


def finish(nodes: list[Node], slot: int, target: Node) -> None:
    with target.client() as new:
        id = new.execute_command("CLUSTER", "MYID")
    for node in sorted(nodes, key=lambda node: node is not target):  # first the one that takes the slot
        with node.client() as client:
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", id)


def reshard(nodes: list[Node], slot: int, to: Node | None = None) -> int:
    """Move a slot with its keys to a node, by default the next one, key by key. Returns how many keys moved."""
    source, target = _choose(nodes, slot, to)
    begin(slot, source, target)
    moved = move_keys(slot, source, target)
    finish(nodes, slot, target)
    return moved


def migrate(nodes: list[Node], slot: int, to: Node | None = None) -> None:
    """Move a slot to a node, by default the next one, at once (Valkey 9)."""
    source, target = _choose(nodes, slot, to)
    with source.client() as old, target.client() as new:
        id = new.execute_command("CLUSTER", "MYID")
        old.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id)
        port = target.port
        eventually(lambda: nodes[find_owner(nodes, slot)].port == port, f"slot {slot} is moved")


def ask(node: Node, *words: object) -> object:
    """The answer of a node to a command that a redirection sent there: an error is an answer."""
    with node.client() as client:
        connection = client.connection_pool.get_connection()
        connection.send_command("ASKING")
        connection.read_response()
        connection.send_command(*words)
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return error
        finally:
            client.connection_pool.release(connection)
