"""The registry of workers: a row for each, which it renews and which expires soon after it stops; and orders to
them."""

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

ROW_MS = 15_000  # life of a row after its last heartbeat: three heartbeats of the usual five seconds
ORDER_MS = 60_000  # an order that was not read by then expires
LISTED_MS = 3_600_000  # names of dead workers are removed after this
CLOCK_EVERY = 60.0  # seconds between two reads of the server's clock
ORDERS = ("quiet", "work", "stop")


class WorkerRegistry:
    """Rows of workers, and orders to them."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._offset: float | None = None  # the server's clock less this process's monotonic one, ms
        self._joined_until = 0.0  # when the list of shares is cleared next, ms of the server's clock
        self._asked = 0.0  # when the offset was read, in seconds of the monotonic clock

    def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row and renew its place in the list; return the order that waits for it, if any.

        Times of the row are shifted so that ``seen`` is now by the server's clock: a worker's own clock may be wrong.
        """
        asked = self._asked
        row = _shift_times(row, self._now() - row.seen)
        fields: dict[Any, Any] = {name: json.dumps(value) for name, value in row.as_dict().items()}
        key = self._keys.worker(row.id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(key, mapping=fields)
        pipeline.pexpire(key, ROW_MS)
        pipeline.zadd(self._keys.workers, {row.id: row.seen})
        pipeline.get(self._keys.order(row.id))
        if self._asked != asked:  # as often as the clock is read
            pipeline.zremrangebyscore(self._keys.workers, "-inf", row.seen - LISTED_MS)
        return _read_order(self._run(pipeline)[3])

    def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Store an order for a worker, in place of any that it has not read. Raises BadInput, LookupFailed."""
        if order not in ORDERS:
            raise BadInput(f"an order is one of {', '.join(ORDERS)}, not {arguments.show(order)}")
        arguments.check_text("worker", worker, limits.MAX_ACTOR)
        actor = arguments.check_text("actor", actor, limits.MAX_ACTOR)
        if not (reason := arguments.check_text("reason", reason, limits.MAX_REASON)):
            raise BadInput("an order to a worker needs a reason", code="SB415")
        words = {"order": order, "actor": actor, "reason": reason, "at": time.time_ns() // 1_000_000}
        try:
            if not self._client.exists(self._keys.worker(worker)):
                raise LookupFailed(f"there is no worker {arguments.show(worker)}: it has stopped or never started")
            self._client.set(self._keys.order(worker), json.dumps(words), px=ORDER_MS)
        except FAILURES as error:
            translate(error)

    def leave(self, worker: str) -> None:
        """Remove a worker's row and its orders."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.delete(self._keys.worker(worker))
        pipeline.delete(self._keys.order(worker))
        pipeline.zrem(self._keys.workers, worker)
        self._run(pipeline)

    def join(self, worker: str, ttl: int) -> list[str]:
        """Note that a worker shares in the duties of partitions; list those that did so within ``ttl`` ms."""
        now = self._now()
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(self._keys.shares, {worker: now})
        pipeline.zrangebyscore(self._keys.shares, now - ttl, "+inf")
        if self._joined_until < now:  # now and then
            pipeline.zremrangebyscore(self._keys.shares, "-inf", now - LISTED_MS)
            self._joined_until = now + LISTED_MS / 60
        return [str(name) for name in self._run(pipeline)[1]]

    def leave_shares(self, worker: str) -> None:
        """Remove a worker from those that share in the duties."""
        try:
            self._client.zrem(self._keys.shares, worker)
        except FAILURES as error:
            translate(error)

    def workers(self) -> list[WorkerInfo]:
        """List the workers whose row exists; remove the names of dead ones from the list."""
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
        """Return ms by the server's clock, which is read once a minute."""
        moment = time.monotonic()
        if self._offset is None or moment - self._asked > CLOCK_EVERY:
            try:
                answer: Any = self._client.time()
            except FAILURES as error:
                translate(error)
            seconds, micros = next(iter(answer.values())) if isinstance(answer, dict) else answer
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
    """Read a worker from its hash; return None for a damaged row, so that it does not hide the others."""
    known = WorkerInfo.__dataclass_fields__
    try:
        return WorkerInfo(**{name: json.loads(value) for name, value in fields.items() if name in known})
    except (TypeError, ValueError):
        return None


def _shift_times(row: WorkerInfo, by: int) -> WorkerInfo:
    holding = [job | {"since": job["since"] + by} for job in row.holding]
    return replace(row, seen=row.seen + by, started=row.started + by, holding=holding)


def _read_order(text: str | None) -> dict[str, Any] | None:
    """Read an order; return None for anything else."""
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("order") in ORDERS else None
