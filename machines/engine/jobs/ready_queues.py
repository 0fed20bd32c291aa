"""What idle workers look out for, at a cost that does not matter: which queues hold work, and what was published."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import redis

from machines.engine.connection import routing
from machines.engine.connection.calls import translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.errors import LookupFailed
from machines.engine.keys import Keys, Partition
from machines.engine.pattern_keys import PatternKeys
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import PublishedMachine

DEFINITIONS = "definitions"  # a topic of the bus (machines/patterns/bus.py): {"machine": name, "version": number}
MAX_NEWS = 64  # workers that are told at once of a new machine; any others find it with their next look
NEWS_MS = 5_000  # nobody is told later than that

Queue = tuple[str, str]  # machine, queue


class ReadyQueues:
    def __init__(self, client: Client, keys: Keys, catalog: Catalog) -> None:
        self._client = client
        self._keys = keys
        self._catalog = catalog
        self._definitions = PatternKeys(keys.prefix).topic(DEFINITIONS).channel

    def ready(self, queues: Iterable[Queue]) -> list[Queue]:
        """Those of the queues that hold ready jobs. On a single server one command when there are none."""
        places = [
            ((machine, queue), partition.ready(queue))
            for machine, queue in queues
            for partition in self._partitions(machine)
        ]
        if not places or self._none([key for _, key in places]):
            return []
        answers = self._send([(key, ("EXISTS", key)) for _, key in places])
        return list(dict.fromkeys(place for (place, _), answer in zip(places, answers, strict=True) if answer == 1))

    def names(self, machines: Iterable[str]) -> list[Queue]:
        """Every queue these machines ever had."""
        places = [(machine, partition.queues) for machine in machines for partition in self._partitions(machine)]
        answers = self._send([(key, ("SMEMBERS", key)) for _, key in places])
        found = [
            (machine, str(queue))
            for (machine, _), answer in zip(places, answers, strict=True)
            if not isinstance(answer, Exception)
            for queue in answer
        ]
        return sorted(set(found))

    def announce(self, published: PublishedMachine) -> None:
        """Tells every process that listens to the topic ``definitions`` which version is the current one now, and wakes
        idle workers for a new one. Who misses it finds out a little later."""
        told = json.dumps({"machine": published.name, "version": published.version}, separators=(",", ":"))
        with contextlib.suppress(*FAILURES):
            self._client.execute_command("SPUBLISH", self._definitions, told)  # type: ignore[no-untyped-call]
        if published.created:
            with contextlib.suppress(*FAILURES):
                self._wake_workers()

    def _wake_workers(self) -> None:
        count = min(int(self._client.zcard(self._keys.workers)), MAX_NEWS)
        if count:
            pipeline = self._client.pipeline(transaction=False)
            pipeline.lpush(self._keys.news, *(["1"] * count))
            pipeline.ltrim(self._keys.news, 0, MAX_NEWS - 1)
            pipeline.pexpire(self._keys.news, NEWS_MS)
            pipeline.execute()

    def _none(self, keys: Sequence[str]) -> bool:
        if not isinstance(self._client, redis.Redis):
            return False
        try:
            return int(self._client.exists(*keys)) == 0
        except FAILURES as error:
            translate(error)

    def _send(self, commands: Sequence[tuple[str, routing.Command]]) -> list[Any]:
        try:
            return routing.send(self._client, commands) if commands else []
        except FAILURES as error:
            translate(error)

    def _partitions(self, machine: str) -> list[Partition]:
        try:
            return self._catalog.partitions(machine)
        except LookupFailed:
            return []  # gone since the list was made
