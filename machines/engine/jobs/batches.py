"""Batches: sets of jobs that are counted together, with jobs that are enqueued when none of them is open any more."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from machines.engine import arguments, limits
from machines.engine.base import return_errors
from machines.engine.connection.calls import translate
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput

from . import records
from .lifecycle import ENQUEUED_TOGETHER, LifecycleMethods
from .reading import raise_missing
from .records import Enqueue, Job, JobBatch

MAX_TOTAL = 1_000_000
ON_THE_WAY = 20  # calls of one round trip
FIRST = "\x00"  # the key of the addition that creates a batch; that of a caller has no NUL

Item = Enqueue | Mapping[str, Any]
Words = tuple[Any, ...]


class BatchMethods(LifecycleMethods):
    """Batches of jobs: a part of ``Engine``."""

    def batch(
        self,
        jobs: Iterable[Item],
        *,
        on_success: Item | None = None,
        on_failure: Item | None = None,
        on_end: Item | None = None,
        id: str | None = None,
        now: int | None = None,
    ) -> JobBatch:
        """Enqueue jobs of one machine as a batch on one partition and return it.

        When none of them is open any more, the same step enqueues ``on_success`` (all are done) or ``on_failure``, and
        ``on_end``, each once; a callback without an input gets the figures. Repeat a call that was interrupted with the
        same ``id`` and jobs: it adds only what is missing. Jobs and callbacks have no unique, idempotency or instance
        key.
        """
        machine, words = self._read_batch_jobs(jobs)
        given = {"on_success": on_success, "on_failure": on_failure, "on_end": on_end}
        callbacks = {name: self._read_batch_job(item, machine)[1] for name, item in given.items() if item is not None}
        name = secrets.token_hex(8) if id is None else _check_id(id)
        root = self._catalog.partition(machine, name).root
        if id is not None and (found := self._find_batch(machine, name)):
            root = found[0]
        return self._add_jobs(machine, root, name, FIRST, words, json.dumps(callbacks), now)

    def add_to_batch(
        self, machine: str, id: str, jobs: Iterable[Item], *, key: str | None = None, now: int | None = None
    ) -> JobBatch:
        """Add jobs to a batch that has not ended, as one of its jobs may do. ``key``: an idempotency key; the same key
        adds only what is missing. Raises LookupFailed."""
        words = self._read_batch_jobs(jobs, machine)[1]
        root, _ = self._require_batch(machine, id)
        return self._add_jobs(machine, root, id, arguments.check_key(key) or secrets.token_hex(8), words, "", now)

    def get_batch(self, machine: str, id: str) -> JobBatch:
        """Read a batch. Raises LookupFailed when there is none: it is kept for a week after its end."""
        return self._require_batch(machine, id)[1]

    def get_batch_of(self, job: Job) -> JobBatch:
        """Read the batch of a job, on the partition of the job alone. Raises LookupFailed when there is none."""
        reply = self._caller.call("sb_batch_look", job.root, job.batch, job.id)
        if reply[0] != Status.OK:
            raise_missing(job.machine, job.batch, "batch")
        return _read_batch(job.machine, job.batch, reply)

    def _require_batch(self, machine: str, id: str) -> tuple[str, JobBatch]:
        found = self._find_batch(machine, _check_id(id))
        return found or raise_missing(machine, id, "batch")

    def _find_batch(self, machine: str, id: str) -> tuple[str, JobBatch] | None:
        """Return the root of the partition that has the batch, and the batch. It stays on its partition while the
        number of partitions grows."""
        roots = [partition.root for partition in self._catalog.partitions(machine)]
        replies = self._caller.many([("sb_batch_look", root, (id, "")) for root in roots])
        for root, reply in zip(roots, replies, strict=True):
            if not isinstance(reply, Exception) and reply[0] == Status.OK:
                return root, _read_batch(machine, id, reply)
        for reply in replies:
            if isinstance(reply, Exception):
                raise return_errors(translate, reply)
        return None

    def _add_jobs(
        self, machine: str, root: str, id: str, key: str, words: Sequence[Words], callbacks: str, now: int | None
    ) -> JobBatch:
        at = arguments.encode_whole("now", now)
        wire: list[tuple[str, str, Words]] = []
        for start in range(0, len(words), ENQUEUED_TOGETHER):
            part = [word for one in words[start : start + ENQUEUED_TOGETHER] for word in one]
            wire.append(("sb_batch", root, (at, id, key, len(words), start, callbacks, *part)))
        reply: Any = None
        for first in range(0, len(wire), ON_THE_WAY):
            for reply in self._caller.many(wire[first : first + ON_THE_WAY]):
                if isinstance(reply, Exception):
                    raise return_errors(translate, reply)
                if reply[0] == Status.GONE:
                    raise_missing(machine, id, "batch")
                if reply[0] != Status.OK:
                    raise BadInput(str(reply[1]))
        return _read_batch(machine, id, reply)

    def _read_batch_jobs(self, items: Iterable[Item], machine: str = "") -> tuple[str, list[Words]]:
        found: list[Words] = []
        for item in items:
            machine, words = self._read_batch_job(item, machine)
            found.append(words)
        arguments.check_count("the number of jobs", len(found), MAX_TOTAL)
        return machine, found

    def _read_batch_job(self, item: Item, machine: str) -> tuple[str, Words]:
        """Return the machine of a job of a batch, and its words."""
        call = records.read_item(item)
        if machine and call.machine != machine:
            raise records.build_refusal(f"the jobs of a batch are of one machine, not of {machine} and {call.machine}")
        if (call.unique, call.key, call.instance_key, call.now) != (None, None, None, None):
            raise records.build_refusal("a job of a batch has no unique, key, instance_key or now")
        arguments.check_machine(call.machine)
        call = replace(call, input=self._encryption.encrypt(call.machine, call.input))
        return call.machine, records.build_arguments(call)


def _check_id(id: object) -> str:
    return arguments.check_name("batch", id, limits.check_unique_key(id))


def _read_batch(machine: str, id: str, reply: Sequence[Any]) -> JobBatch:
    total, open, done, failed, added, created, ended = (int(word or 0) for word in reply[1:8])
    figures = {"total": total, "open": open, "done": done, "failed": failed, "added": added}
    return JobBatch(machine, id, **figures, created=created, ended=ended, error=str(reply[8]))
