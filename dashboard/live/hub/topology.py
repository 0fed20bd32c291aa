"""Knows the primaries of a cluster and their slots, as any node that answers tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from redis.asyncio import Redis
from redis.crc import key_slot

from dashboard.live.limits import Limits
from machines.engine.connection.client import FAILURES
from machines.engine.connection.redis_url import Seed, read_url

from .clients import connect

SLOTS = 16384


class Topology:
    """``primaries``: name -> host and port, as of the last reading; ``complete``: whether each slot has an owner."""

    def __init__(self, url: str, limits: Limits) -> None:
        self._url = url
        self._limits = limits
        self._known: dict[Seed, None] = dict.fromkeys(read_url(url).seeds)
        self._ranges: list[tuple[int, int, str]] = []
        self.primaries: Mapping[str, Seed] = {}
        self.complete = False

    async def read(self, clients: Iterable[Redis] = ()) -> None:
        """Ask the ``clients``, then every node known so far, until one answers. Raises what the last one raised."""
        failure: BaseException | None = None
        for client in clients:
            try:
                return self._take(await _ask(client, self._limits.deadline))
            except FAILURES as error:
                failure = error
        for node in list(self._known):
            client = connect(self._url, self._limits, node)
            try:
                return self._take(await _ask(client, self._limits.deadline), node[0])
            except FAILURES as error:
                failure = error
            finally:
                await client.aclose()
        assert failure is not None
        raise failure

    def owner(self, key: str) -> str:
        """Return the name of the primary that has a key; "" where no node has it."""
        slot = key_slot(key.encode())
        return next((name for first, last, name in self._ranges if first <= slot <= last), "")

    def _take(self, ranges: list[Any], host: str = "") -> None:
        """Keep the answer of a node. A node that does not know its own name is at ``host``, where it answered."""
        found: list[tuple[int, int, str]] = []
        primaries: dict[str, Seed] = {}
        for first, last, *nodes in ranges:
            places = [(str(node[0] or host), int(node[1])) for node in nodes]
            name = f"{places[0][0]}:{places[0][1]}"
            primaries[name] = places[0]
            found.append((int(first), int(last), name))
            self._known |= dict.fromkeys(places)
        self._ranges, self.primaries = found, primaries
        self.complete = sum(last - first + 1 for first, last, _ in found) == SLOTS


async def _ask(client: Redis, deadline: float) -> list[Any]:
    async with asyncio.timeout(deadline):  # not wait_for, which loses a cancellation in Python 3.11
        ranges: list[Any] = await client.execute_command("CLUSTER", "SLOTS")
    return ranges
