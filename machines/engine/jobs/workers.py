"""The registry of workers: a row for each, which it renews and which expires soon after it stops; and orders to
them."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection.calls import Caller
from machines.engine.connection.routing import Command
from machines.engine.errors import BadInput, EngineUnavailable, LookupFailed
from machines.engine.keys import Keys
from machines.engine.records import PartialList

from .records import WorkerInfo

ROW_MS = 15_000  # life of a row after its last heartbeat: three heartbeats of the usual five seconds
ORDER_MS = 60_000  # an order that was not read by then expires
LISTED_MS = 3_600_000  # names of dead workers are removed after this
CLOCK_EVERY = 60.0  # seconds between two reads of the server's clock
ORDERS = ("quiet", "work", "stop")


class WorkerRegistry:
    """Rows of workers, and orders to them."""

    def __init__(self, caller: Caller, keys: Keys) -> None:
        self._caller = caller
        self._keys = keys
        self._names: list[str] = []  # of workers, as they were listed last
        self._offset: float | None = None  # the server's clock less this process's monotonic one, ms
        self._joined_until = 0.0  # when the list of shares is cleared next, ms of the server's clock
        self._asked = 0.0  # when the offset was read, in seconds of the monotonic clock

    def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row and renew its place in the list; return the order that waits for it, if any. These keys
        lie on different nodes of a cluster: raises EngineUnavailable only where none of them answers.

        Times of the row are shifted so that ``seen`` is now by the server's clock: a worker's own clock may be wrong.
        """
        asked = self._asked
        row = _shift_times(row, self._read_clock() - row.seen)
        fields: dict[Any, Any] = {name: json.dumps(value) for name, value in row.as_dict().items()}
        key = self._keys.worker(row.id)
        words: list[tuple[str, Command]] = [
            (key, ("HSET", key, *(word for pair in fields.items() for word in pair))),
            (key, ("PEXPIRE", key, ROW_MS)),
            (self._keys.workers, ("ZADD", self._keys.workers, row.seen, row.id)),
            (self._keys.order(row.id), ("GET", self._keys.order(row.id))),
        ]
        if self._asked != asked:  # as often as the clock is read
            words.append((self._keys.workers, ("ZREMRANGEBYSCORE", self._keys.workers, "-inf", row.seen - LISTED_MS)))
        order = self._caller.commands_available(words)[3]
        return None if isinstance(order, EngineUnavailable) else _read_order(order)

    def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Store an order for a worker, in place of any that it has not read. Raises BadInput, LookupFailed."""
        if order not in ORDERS:
            raise BadInput(f"an order is one of {', '.join(ORDERS)}, not {arguments.show(order)}")
        arguments.check_text("worker", worker, limits.MAX_ACTOR)
        actor = arguments.check_text("actor", actor, limits.MAX_ACTOR)
        if not (reason := arguments.check_text("reason", reason, limits.MAX_REASON)):
            raise BadInput("an order to a worker needs a reason", code="SB415")
        words = {"order": order, "actor": actor, "reason": reason, "at": time.time_ns() // 1_000_000}
        if not self._caller.command("EXISTS", self._keys.worker(worker)):
            raise LookupFailed(f"there is no worker {arguments.show(worker)}: it has stopped or never started")
        self._caller.command("SET", self._keys.order(worker), json.dumps(words), "PX", ORDER_MS)

    def leave(self, worker: str) -> None:
        """Remove a worker's row and its orders."""
        row, order = self._keys.worker(worker), self._keys.order(worker)
        self._caller.commands_available(
            [(row, ("DEL", row)), (order, ("DEL", order)), (self._keys.workers, ("ZREM", self._keys.workers, worker))]
        )

    def join(self, worker: str, ttl: int) -> list[str]:
        """Note that a worker shares in the duties of partitions; list those that did so within ``ttl`` ms."""
        now, key = self._read_clock(), self._keys.shares
        # Up to a while ahead: a clock that was set back must not keep dead workers.
        words: list[Command] = [("ZADD", key, now, worker), ("ZRANGEBYSCORE", key, now - ttl, now + ttl)]
        if self._joined_until < now:  # now and then
            words.append(("ZREMRANGEBYSCORE", key, "-inf", now - LISTED_MS))
            self._joined_until = now + LISTED_MS / 60
        return [str(name) for name in self._caller.commands([(key, each) for each in words])[1]]

    def leave_shares(self, worker: str) -> None:
        """Remove a worker from those that share in the duties."""
        self._caller.command("ZREM", self._keys.shares, worker)

    def workers(self) -> PartialList[WorkerInfo]:
        """List the workers whose row exists; remove the names of dead ones from the list.

        Rows lie on different nodes of a cluster: the attribute ``missing`` of the result lists the keys that did not
        answer. The names of the last call, if there was one, are used where their list does not.
        """
        missing: list[str] = []
        try:
            self._names = [str(name) for name in self._caller.command("ZRANGE", self._keys.workers, 0, 999)]
        except EngineUnavailable:
            if not self._caller.spread:
                raise
            if not self._names:
                self._caller.everywhere("TIME")  # raises where nothing answers
            missing.append(self._keys.workers)
        keys = [self._keys.worker(name) for name in self._names]
        rows = self._read_rows(keys)
        missing += [key for key, fields in zip(keys, rows, strict=True) if isinstance(fields, EngineUnavailable)]
        dead = [name for name, fields in zip(self._names, rows, strict=True) if fields == {}]
        if dead and self._keys.workers not in missing:
            self._caller.command("ZREM", self._keys.workers, *dead)
        found = [read_worker(fields) for fields in rows if fields and isinstance(fields, dict)]
        return PartialList((row for row in found if row is not None), missing=missing)

    def _read_rows(self, keys: Sequence[str]) -> list[Any]:
        """Return the hashes, or EngineUnavailable for those whose node does not answer: for all, where the node of all
        is the only one that does not. Raises EngineUnavailable where no node answers."""
        try:
            return self._caller.commands_available([(key, ("HGETALL", key)) for key in keys])
        except EngineUnavailable as error:
            if not self._caller.spread:
                raise
            self._caller.everywhere("TIME")  # raises where nothing answers
            return [error] * len(keys)

    def reread_clock(self) -> None:
        """Read the server's clock anew with the next call."""
        self._offset = None

    def _read_clock(self) -> int:
        """Return ms by the server's clock, which is read once a minute."""
        moment = time.monotonic()
        if self._offset is None or moment - self._asked > CLOCK_EVERY:
            seconds, micros = self._caller.everywhere("TIME")[0]
            moment = time.monotonic()
            self._offset, self._asked = seconds * 1000 + micros / 1000 - moment * 1000, moment
        return round(moment * 1000 + self._offset)


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
