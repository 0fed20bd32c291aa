"""Jobs: taking, finishing, renewing, and looking at them.

Delivery rule: a handler runs at least once; its effect on the machine happens exactly once. ``take`` pops, leases
and counts the attempt in one call; ``complete`` and ``fail`` end the job and move its instance in one call, fenced
by the token that take gave out.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from . import arguments, limits, replies
from .calls import Caller
from .catalog import Catalog
from .errors import BadInput, EngineFault, LookupFailed, Refused, SignalboxError
from .keys import Partition
from .records import Instance, Job
from .replies import Status

PLACES = ("ready", "leased", "delayed", "dead")
SWEEP_LIMIT = 500  # jobs of one queue moved by one sweep call: keeps the call in the low milliseconds
MAX_RESULT = 64 * 1024  # bytes of JSON
MAX_TAKEN = 1000  # jobs one call hands out
MAX_LISTED = 1000  # jobs one call shows


class Queues:
    """``posted`` is told of a partition whose step, caused by the end of a job, sent messages."""

    def __init__(self, caller: Caller, catalog: Catalog, posted: Callable[[str, int | None], None]) -> None:
        self._caller = caller
        self._catalog = catalog
        self._posted = posted

    def take(self, machine: str, queue: str, worker: str, count: int, lease: int | None, now: int | None) -> list[Job]:
        """Up to ``count`` jobs, over the machine's partitions; each is leased to ``worker`` when this returns."""
        arguments.queue(queue)
        arguments.text("worker", worker, limits.MAX_ACTOR)
        arguments.count("count", count, MAX_TAKEN)
        ends = (_number("lease", lease), _number("now", now))
        taken: list[Job] = []
        failed = None
        for partition in self._in_turn(machine):
            wanted = count - len(taken)
            if wanted <= 0:
                break
            args = (queue, worker, wanted, *ends, os.urandom(6).hex())
            try:
                taken += self._read(machine, partition, self._caller.call("sb_take", partition.root, *args))
            except SignalboxError as error:
                failed = error  # what the other partitions gave is leased already and has to reach its worker
        if failed is not None and not taken:
            raise failed
        return taken

    def _in_turn(self, machine: str) -> list[Partition]:
        """The partitions from any of them on: one that always has work must not keep the others from their turn."""
        partitions = self._catalog.partitions(machine)
        start = secrets.randbelow(len(partitions))
        return partitions[start:] + partitions[:start]

    def complete(self, job: Job, result: Any, now: int | None) -> Instance | None:
        encoded = "" if result is None else arguments.document("result", result, MAX_RESULT)
        reply = self._caller.call("sb_complete", job.root, job.id, job.token, encoded, _number("now", now))
        if reply[0] != Status.OK:
            raise self._failure(job, reply)
        moved = self._moved(job, reply)
        if replies.posted(reply):
            self._posted(job.root, now)
        return moved

    def fail(
        self, job: Job, error: str, kind: str, trace: str, again: str, now: int | None, delay: int | None = None
    ) -> str:
        """The place the job went to: "delayed", "dead", or "ready" when handed back."""
        args = (
            job.id,
            job.token,
            error[:1000],
            kind[:200],
            trace[-16000:],
            again,
            _number("now", now),
            _number("delay", delay),
        )
        reply = self._caller.call("sb_fail", job.root, *(_clean(a) if isinstance(a, str) else a for a in args))
        if reply[0] != Status.OK:
            raise self._failure(job, reply)
        return str(reply[1])

    def extend(self, jobs: Sequence[Job], lease: int, now: int | None) -> list[bool]:
        """Whether each lease is still held, in order; those that are now run ``lease`` ms from now."""
        head = (_number("now", now), arguments.count("lease", lease, limits.MAX_LEASE))
        held = [False] * len(jobs)
        for root in dict.fromkeys(job.root for job in jobs):
            own = [number for number, job in enumerate(jobs) if job.root == root]
            words = [word for number in own for word in (jobs[number].id, jobs[number].token)]
            reply = self._caller.call("sb_extend", root, *head, *words)
            if reply[0] != Status.OK:
                raise BadInput(str(reply[1]))
            for number, kept in zip(own, reply[1:], strict=True):
                held[number] = str(kept) == "1"
        return held

    def sweep(self, machine: str, now: int | None) -> int:
        """Take back expired leases and wake due retries; how many jobs moved."""
        at, moved, failed = _number("now", now), 0, None
        for partition in self._catalog.partitions(machine):
            try:
                moved += self._sweep(machine, partition, at)
            except SignalboxError as error:
                failed = error  # the others are swept all the same
        if failed is not None:
            raise failed
        return moved

    def _sweep(self, machine: str, partition: Partition, now: str) -> int:
        reply = self._caller.call("sb_sweep", partition.root, now, SWEEP_LIMIT)
        if reply[0] != Status.OK:
            raise EngineFault(f"sweeping {machine}: {reply[1]}")
        return sum(int(n) for n in reply[1:4])

    def bells(self, machine: str, queue: str) -> list[str]:
        arguments.queue(queue)
        return [partition.bell(queue) for partition in self._catalog.partitions(machine)]

    def jobs(self, machine: str, queue: str, place: str, limit: int) -> list[Job]:
        arguments.queue(queue)
        if place not in PLACES:
            raise BadInput(f"a job is in one of {', '.join(PLACES)}, not {place!r}", code="SB406")
        arguments.count("limit", limit, MAX_LISTED)
        found: list[Job] = []
        for partition in self._catalog.partitions(machine):
            reply = self._caller.call("sb_jobs", partition.root, queue, place, limit)
            found += self._read(machine, partition, reply)
        return found[:limit]

    def job(self, machine: str, id: str) -> Job:
        number, dash, _ = str(id).partition("-")
        for partition in self._catalog.partitions(machine):
            if dash and partition.root.endswith(f":{number}}}"):
                found = self._read(machine, partition, self._caller.call("sb_jobs", partition.root, "", "job", id))
                if found:
                    return found[0]
        raise LookupFailed(
            f"machine {machine!r} has no job {id!r}: it is finished, withdrawn or never was", code="SB423"
        )

    def _read(self, machine: str, partition: Partition, reply: Sequence[Any]) -> list[Job]:
        if reply[0] != Status.OK:
            raise BadInput(str(reply[1]))
        found = []
        for id, row, flat in zip(reply[1::3], reply[2::3], reply[3::3], strict=True):
            raw = replies.pairs(flat)
            data = self._catalog.types(machine, partition.root, raw["_def"]).data(raw) if "_def" in raw else {}
            found.append(replies.job(machine, partition.root, id, replies.pairs(row), data))
        return found

    def _moved(self, job: Job, reply: Sequence[Any]) -> Instance | None:
        if len(reply) < 3:
            return None
        raw = replies.fields(reply)
        types = self._catalog.types(job.machine, job.root, raw["_def"])
        return replies.instance(job.machine, job.instance, raw, types, replies.outcome(reply))

    @staticmethod
    def _failure(job: Job, reply: Sequence[Any]) -> Exception:
        if reply[0] == Status.REFUSED:
            return Refused(replies.explanation(job.machine, job.instance, reply[1]))
        return replies.failure(job.machine, job.id, reply)


def _number(what: str, value: int | None) -> str:
    return arguments.whole(what, value)


def _clean(text: str) -> str:
    """Text of an exception as Redis and JSON can carry it: half surrogates and NUL become visible marks."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
