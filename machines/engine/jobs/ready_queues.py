"""What idle workers watch cheaply: which queues hold ready jobs, and which machines were published."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import redis

from machines.engine.connection import routing
from machines.engine.connection.calls import require_any, translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.keys import Keys
from machines.engine.pattern_keys import PatternKeys
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import PartialList, PublishedMachine

DEFINITIONS = "definitions"  # a topic of the bus (machines/patterns/bus.py): {"machine": name, "version": number}
MAX_NEWS = 64  # workers that are woken for a new machine; others find it at their next check
NEWS_MS = 5_000  # life of the wake-up list

TOGETHER = 500  # keys of one EXISTS

Queue = tuple[str, str]  # machine, queue
Place = tuple[Queue, int, str]  # and the number of a partition, and its key


class ReadyQueues:
    """Reads which queues hold work, and announces published machines."""

    def __init__(self, client: Client, keys: Keys, catalog: Catalog) -> None:
        self._client = client
        self._keys = keys
        self._catalog = catalog
        self._definitions = PatternKeys(keys.prefix).topic(DEFINITIONS).channel

    def find(self, queues: Iterable[Queue]) -> dict[Queue, set[int]]:
        """Return queue -> its partitions that hold ready jobs, for those of the queues that have any. On a single
        server one command for 500 keys when there are none."""
        places = [
            (queue, number, partition.ready(queue[1]))
            for queue in queues
            for number, partition in enumerate(self._catalog.find_partitions(queue[0]))
        ]
        places = self._drop_empty(places)
        answers = self._send([(key, ("EXISTS", key)) for _, _, key in places])
        found: dict[Queue, set[int]] = {}
        for (queue, number, _), answer in zip(places, answers, strict=True):
            if answer == 1:
                found.setdefault(queue, set()).add(number)
        return found

    def list_queues(self, machines: Iterable[str]) -> PartialList[Queue]:
        """List every queue these machines ever had, in the partitions that answer. Raises EngineUnavailable where none
        does."""
        places = [(machine, partition) for machine in machines for partition in self._catalog.find_partitions(machine)]
        answers = self._send([(partition.queues, ("SMEMBERS", partition.queues)) for _, partition in places])
        require_any(answers)
        pairs = list(zip(places, answers, strict=True))
        found = {
            (machine, str(queue))
            for (machine, _), answer in pairs
            if not isinstance(answer, Exception)
            for queue in answer
        }
        missing = [partition.root for (_, partition), answer in pairs if isinstance(answer, Exception)]
        return PartialList(sorted(found), missing=missing)

    def announce(self, published: PublishedMachine) -> None:
        """Publish the new current version to the topic ``definitions``, and wake idle workers for a new machine. A
        process that misses the message finds the version at its next check."""
        text = json.dumps({"machine": published.name, "version": published.version}, separators=(",", ":"))
        with contextlib.suppress(*FAILURES):
            routing.execute(self._client, ("SPUBLISH", self._definitions, text))
        if published.created:
            with contextlib.suppress(*FAILURES):
                self._wake_workers()

    def _wake_workers(self) -> None:
        count = min(int(routing.execute(self._client, ("ZCARD", self._keys.workers))), MAX_NEWS)
        if count:
            news = self._keys.news
            words: list[routing.Command] = [("LPUSH", news, *["1"] * count), ("LTRIM", news, 0, MAX_NEWS - 1)]
            routing.send(self._client, [(news, each) for each in (*words, ("PEXPIRE", news, NEWS_MS))])

    def _drop_empty(self, places: list[Place]) -> list[Place]:
        """Leave out groups of places that hold nothing, on a single server. A cluster is asked for each key."""
        if not isinstance(self._client, redis.Redis):
            return places
        groups = [places[start : start + TOGETHER] for start in range(0, len(places), TOGETHER)]
        try:
            pipeline = self._client.pipeline(transaction=False)
            for group in groups:
                pipeline.exists(*(key for _, _, key in group))
            counts = pipeline.execute() if groups else []
        except FAILURES as error:
            translate(error)
        return [place for group, count in zip(groups, counts, strict=True) if int(count) for place in group]

    def _send(self, commands: Sequence[tuple[str, routing.Command]]) -> list[Any]:
        try:
            return routing.send(self._client, commands) if commands else []
        except FAILURES as error:
            translate(error)
