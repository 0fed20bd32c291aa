"""Which workers are alive: a row for each that it renews itself, gone soon after it stops; and orders to them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection.calls import translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.errors import BadInput, LookupFailed
from machines.engine.keys import Keys

from .records import WorkerInfo

ROW_MS = 15_000  # a row outlives its last beat by this: three missed beats of the usual five seconds
ORDER_MS = 60_000  # an order nobody has read by then is void
LISTED_MS = 3_600_000  # names of workers that died are forgotten after this
CLOCK_EVERY = 60.0  # seconds between two looks at the server's clock
ORDERS = ("quiet", "work", "stop")


class WorkerRegistry:
    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._offset: float | None = None  # the server's clock less this process's monotonic one, ms
        self._asked = 0.0  # when that was found out, in seconds of the latter

    def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row and renew its place in the list; the order that stands for it, if there is one.

        The row's moments are shifted so that ``seen`` is now by the server's clock: a worker's own may be set anyhow.
        """
        asked = self._asked
        row = _shifted(row, self._now() - row.seen)
        fields: dict[Any, Any] = {name: json.dumps(value) for name, value in row.as_dict().items()}
        key = self._keys.worker(row.id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(key, mapping=fields)
        pipeline.pexpire(key, ROW_MS)
        pipeline.zadd(self._keys.workers, {row.id: row.seen})
        pipeline.get(self._keys.order(row.id))
        if self._asked != asked:  # now and then
            pipeline.zremrangebyscore(self._keys.workers, "-inf", row.seen - LISTED_MS)
        return _order(self._run(pipeline)[3])

    def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Leave an order for a worker, in place of any that it has not read."""
        if order not in ORDERS:
            raise BadInput(f"a worker is told one of {', '.join(ORDERS)}, not {arguments.show(order)}")
        arguments.check_text("worker", worker, limits.MAX_ACTOR)
        actor = arguments.check_text("actor", actor, limits.MAX_ACTOR)
        if not (reason := arguments.check_text("reason", reason, limits.MAX_REASON)):
            raise BadInput("telling a worker what to do needs a reason", code="SB415")
        words = {"order": order, "actor": actor, "reason": reason, "at": time.time_ns() // 1_000_000}
        try:
            if not self._client.exists(self._keys.worker(worker)):
                raise LookupFailed(f"there is no worker {arguments.show(worker)}: it has stopped, or was never there")
            self._client.set(self._keys.order(worker), json.dumps(words), px=ORDER_MS)
        except FAILURES as error:
            translate(error)

    def leave(self, worker: str) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.delete(self._keys.worker(worker))
        pipeline.delete(self._keys.order(worker))
        pipeline.zrem(self._keys.workers, worker)
        self._run(pipeline)

    def workers(self) -> list[WorkerInfo]:
        """Workers whose row still stands; names left behind by dead ones are cleared on the way."""
        try:
            names: list[Any] = self._client.zrange(self._keys.workers, 0, 999)
            if not names:
                return []
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.hgetall(self._keys.worker(name))
            rows = pipeline.execute()
            if dead := [name for name, fields in zip(names, rows, strict=True) if not fields]:
                self._client.zrem(self._keys.workers, *dead)
        except FAILURES as error:
            translate(error)
        return [found for fields in rows if fields and (found := read_worker(fields)) is not None]

    def _now(self) -> int:
        """ms by the server's clock, which is asked now and then."""
        moment = time.monotonic()
        if self._offset is None or moment - self._asked > CLOCK_EVERY:
            try:
                told: Any = self._client.time()
            except FAILURES as error:
                translate(error)
            seconds, micros = next(iter(told.values())) if isinstance(told, dict) else told
            moment = time.monotonic()
            self._offset, self._asked = seconds * 1000 + micros / 1000 - moment * 1000, moment
        return round(moment * 1000 + self._offset)

    @staticmethod
    def _run(pipeline: Any) -> list[Any]:
        try:
            replies: list[Any] = pipeline.execute()
        except FAILURES as error:
            translate(error)
        return replies


def read_worker(fields: dict[str, str]) -> WorkerInfo | None:
    """A worker as its hash holds it; None where it is no whole row: one such must not hide the others."""
    known = WorkerInfo.__dataclass_fields__
    try:
        return WorkerInfo(**{name: json.loads(value) for name, value in fields.items() if name in known})
    except (TypeError, ValueError):
        return None


def _shifted(row: WorkerInfo, by: int) -> WorkerInfo:
    holding = [job | {"since": job["since"] + by} for job in row.holding]
    return replace(row, seen=row.seen + by, started=row.started + by, holding=holding)


def _order(text: str | None) -> dict[str, Any] | None:
    """An order as it was left; None for what is none."""
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("order") in ORDERS else None
