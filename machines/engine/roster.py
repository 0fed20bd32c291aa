"""Which workers are alive: a row for each that it renews itself, gone soon after it stops."""

from __future__ import annotations

import json
import time
from typing import Any

from .calls import translate
from .client import FAILURES, Client
from .keys import Keys
from .records import WorkerRow

ROW_MS = 15_000  # a row outlives its last beat by this: three missed beats of the usual five seconds


class Roster:
    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def beat(self, row: WorkerRow) -> None:
        """Write a worker's row and renew its place in the list."""
        fields: dict[Any, Any] = {name: json.dumps(value) for name, value in row.as_dict().items()}
        key = self._keys.worker(row.id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(key, mapping=fields)
        pipeline.pexpire(key, ROW_MS)
        pipeline.zadd(self._keys.workers, {row.id: row.seen})
        self._run(pipeline)

    def leave(self, worker: str) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.delete(self._keys.worker(worker))
        pipeline.zrem(self._keys.workers, worker)
        self._run(pipeline)

    def workers(self) -> list[WorkerRow]:
        """Workers whose row still stands; names left behind by dead ones are cleared on the way."""
        try:
            names: list[Any] = self._client.zrange(self._keys.workers, 0, 999)
            if not names:
                return []
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.hgetall(self._keys.worker(name))
            rows = pipeline.execute()
            stale = (time.time() - ROW_MS / 1000) * 1000
            self._client.zremrangebyscore(self._keys.workers, "-inf", f"({stale:.0f}")
        except FAILURES as error:
            translate(error)
        return [found for fields in rows if fields and (found := row(fields)) is not None]

    @staticmethod
    def _run(pipeline: Any) -> None:
        try:
            pipeline.execute()
        except FAILURES as error:
            translate(error)


def row(fields: dict[str, str]) -> WorkerRow | None:
    """A worker as its hash holds it; None where it is no whole row: one such must not hide the others."""
    known = WorkerRow.__dataclass_fields__
    try:
        return WorkerRow(**{name: json.loads(value) for name, value in fields.items() if name in known})
    except (TypeError, ValueError):
        return None
