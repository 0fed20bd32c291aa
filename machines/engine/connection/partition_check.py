"""Finds partitions that are split over nodes of a cluster, or that have lost what makes them partitions.

Reads only. On a cluster the account needs ``cluster|slots``, ``cluster|nodes``, ``cluster|countkeysinslot`` and
``cluster|getkeysinslot`` besides its own commands; all of them look at one slot at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from machines.engine.keys import Partition

from . import routing
from .client import Client
from .cluster_routing import find_slot

SAMPLE = 100  # keys of a foreign slot that are looked at
_OPEN = re.compile(r"\[(\d+)-([<>])-(\w+)\]")


@dataclass(frozen=True, slots=True)
class PartitionFault:
    """What is wrong with one partition, and what to do.

    ``kind``: "split" (a node that does not serve the slot holds ``keys`` of it), "moving" (the slot is on its way from
    node to node), "unserved" (no node serves the slot) or "incomplete" (the key with the partition's versions is not
    there). ``node``: the node's address, "" for none.
    """

    root: str
    kind: str
    slot: int
    node: str
    keys: int
    advice: str

    def __str__(self) -> str:
        where = f"slot {self.slot}" + (f", {self.node}" if self.node else "")
        what = f", {self.keys} keys" if self.keys else ""
        return f"{self.root}: {self.kind} ({where}{what}). {self.advice}"


def check_partitions(client: Client, partitions: Sequence[Partition]) -> list[PartitionFault]:
    """List what is wrong with partitions of published machines. Raises what redis-py raises."""
    if not isinstance(client, redis.RedisCluster):
        return [fault for partition in partitions for fault in _check_meta(client, partition, 0, "")]
    nodes = {routing.get_address(node): node for node in routing.list_nodes(client)}
    owners = _read_owners(nodes)
    moving = _read_moving(nodes)
    faults: list[PartitionFault] = []
    for partition in partitions:
        slot = find_slot(partition.root)
        owner = next((name for first, last, name in owners if first <= slot <= last), "")
        faults += _check_partition(nodes, partition, slot, owner, moving.get(slot, []))
    return faults


def _check_partition(
    nodes: dict[str, redis.Redis], partition: Partition, slot: int, owner: str, moving: Sequence[str]
) -> Iterator[PartitionFault]:
    """Look at one slot on every node."""
    root = partition.root
    if owner not in nodes:
        advice = "Bring the node back, or give the slot to another: `redis-cli --cluster check <node>`."
        yield PartitionFault(root, "unserved", slot, owner, 0, advice)
        return
    if moving:
        advice = (
            "If nobody is resharding now, finish it: `redis-cli --cluster fix <node>`. Calls are refused until then."
        )
        yield PartitionFault(root, "moving", slot, " and ".join(moving), 0, advice)
    else:
        yield from _check_meta(nodes[owner], partition, slot, owner)
    for name, node in nodes.items():
        if name != owner and name not in moving and (count := _count_foreign(node, root, slot)):
            advice = f"Stop what uses this machine, then move them to {owner}: docs/operate.md#moving-slots."
            yield PartitionFault(root, "split", slot, name, count, advice)


def _check_meta(node: redis.Redis, partition: Partition, slot: int, owner: str) -> Iterator[PartitionFault]:
    if not node.exists(partition.meta):
        advice = (
            "Run `manage.py machine restore`, or publish the machine again; bring its instances back from a backup."
        )
        yield PartitionFault(partition.root, "incomplete", slot, owner, 0, advice)


def _count_foreign(node: redis.Redis, root: str, slot: int) -> int:
    """Count the keys of a slot on a node that does not serve it; 0 where none of the first is of this partition."""
    count = int(_ask(node, "CLUSTER COUNTKEYSINSLOT", slot))
    found = _ask(node, "CLUSTER GETKEYSINSLOT", slot, SAMPLE) if count else []
    return count if any(_text(key).startswith(f"{root}:") for key in found) else 0


def _read_owners(nodes: dict[str, redis.Redis]) -> list[tuple[int, int, str]]:
    """Read which node serves which slots, from the first node that answers."""
    answer = _ask(next(iter(nodes.values())), "CLUSTER SLOTS")
    known = {name.rpartition(":")[2]: name for name in nodes}  # a node may say its host in another form
    return [
        (int(first), int(last), name if (name := f"{_text(host)}:{port}") in nodes else known.get(str(port), name))
        for first, last, (host, port, *_), *_ in answer
    ]


def _read_moving(nodes: dict[str, redis.Redis]) -> dict[int, list[str]]:
    """Return slot -> the nodes that say it is on its way to them or away from them."""
    found: dict[int, list[str]] = {}
    for name, node in nodes.items():
        answer = _text(_ask(node, "CLUSTER NODES"))
        own = next((line for line in answer.splitlines() if "myself" in line), "")
        for slot, _, _ in _OPEN.findall(own):
            found.setdefault(int(slot), []).append(name)
    return found


def _ask(node: redis.Redis, words: str, *arguments: Any) -> Any:
    """Send a command and return its answer as the server gave it."""
    connection = node.connection_pool.get_connection()
    try:
        connection.send_command(*words.split(), *arguments)  # type: ignore[no-untyped-call]
        return connection.read_response()
    finally:
        node.connection_pool.release(connection)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
