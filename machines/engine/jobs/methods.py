"""The part of the engine's front door that has to do with jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from machines.engine import limits
from machines.engine.connection.calls import Caller
from machines.engine.errors import SignalboxError
from machines.engine.keys import Keys
from machines.engine.permits import Permit
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance, Outcome

from .lifecycle import Queues
from .mending import MendReport, MendWalk, finish_walk
from .queue_operations import QueueOperations
from .ready_queues import ReadyQueues
from .records import Enqueue, Job, Pause, QueueStats, Taken


class JobMethods:
    """What ``Engine`` answers about queues and their jobs. Times given as ``now`` stand in for the server's clock."""

    _queues: Queues
    _operator: QueueOperations
    _lookout: ReadyQueues
    _caller: Caller
    _catalog: Catalog
    keys: Keys

    # Putting

    def enqueue(
        self,
        machine: str,
        src: str,
        input: Any = None,
        *,
        queue: str | None = None,
        priority: int = limits.DEFAULT_PRIORITY,
        delay: int = 0,
        unique: str | None = None,
        attempts: int = limits.DEFAULT_ATTEMPTS,
        backoff: int = limits.DEFAULT_BACKOFF,
        lease: int = limits.DEFAULT_LEASE,
        timeout: int = 0,
        jitter: bool = True,
        stop: Sequence[str] = (),
        instance_key: str | None = None,
        now: int | None = None,
    ) -> Job:
        """Put a job on a queue (``src`` where none is named) for which no instance waits.

        ``priority`` 0 to 9, 9 first; ``delay``, ``backoff``, ``lease``, ``timeout`` in ms. With ``unique``, a key that
        has an open job on this queue gives that job, and nothing is added. The job lies on the partition of ``unique``,
        else of ``instance_key``, else on any. ``stop``: kinds of exceptions it is not tried again for.
        """
        return self._queues.enqueue(
            Enqueue(
                machine,
                src,
                input,
                queue,
                priority=priority,
                delay=delay,
                unique=unique,
                attempts=attempts,
                backoff=backoff,
                lease=lease,
                timeout=timeout,
                jitter=jitter,
                stop=stop,
                instance_key=instance_key,
                now=now,
            )
        )

    def enqueue_many(self, items: Iterable[Enqueue | Mapping[str, Any]]) -> list[Job | SignalboxError]:
        """Many jobs in one round trip; for each, in order, the job or the error it met. A hundred of one partition
        are put, or not, together."""
        return self._queues.enqueue_many(items)

    # Working

    def take(
        self, machine: str, queue: str, worker: str, *, count: int = 1, lease: int | None = None, now: int | None = None
    ) -> Taken:
        """Up to ``count`` ready jobs, each leased to ``worker`` for ``lease`` ms (None: as the definition says)."""
        return self._queues.take(machine, queue, worker, count, lease, now)

    def complete(self, job: Job, result: Any = None, *, now: int | None = None) -> Instance | None:
        """End a job and move its instance, together. None when nobody waits for it.

        Raises LeaseLost when the token no longer holds it, Refused when the step fails (the job is then still held).
        """
        return self._queues.complete(job, result, now)

    def complete_many(
        self, ends: Iterable[tuple[Job, Any]], *, now: int | None = None
    ) -> list[Outcome | SignalboxError | None]:
        """Many jobs with their results in one round trip, each as ``complete`` would end it: for each, in order, the
        transitions its instance took, None where nobody waits, or the error it met."""
        return self._queues.complete_many(ends, now)

    def fail(
        self,
        job: Job,
        error: str,
        *,
        kind: str = "",
        trace: str = "",
        retry: bool = True,
        delay: int | None = None,
        kinds: Iterable[str] = (),
        now: int | None = None,
    ) -> str:
        """A failed attempt: "delayed" until the next one, or "dead" when there is none; then the instance gets
        ``error.invoke.<id>`` in the same step.

        ``kind`` names the exception, ``kinds`` what else it is (its bases): a job whose definition stops at one of them
        is not tried again. ``delay``: ms until the next attempt, in place of the backoff. Raises LeaseLost.
        """
        return self._queues.fail(job, error, kind, trace, "1" if retry else "0", now, delay, kinds)

    def hand_back(self, job: Job, *, delay: int = 0, now: int | None = None) -> None:
        """Return a job unworked, the attempt not counted: ready again after ``delay`` ms. Raises LeaseLost."""
        self._queues.fail(job, "", "", "", "return", now, delay)

    def extend(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[bool]:
        """Renew leases to ``lease`` ms from now, none past its job's deadline; whether each is still held, in order."""
        return [not why for why in self.renew(jobs, lease, now=now)]

    def renew(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[str]:
        """The same; for each '' when it is held, else why it is not: "taken back", "withdrawn" or "gone"."""
        return self._queues.renew([jobs] if isinstance(jobs, Job) else list(jobs), lease, now)

    def progress(
        self, job: Job, done: float, total: float | None = None, note: str = "", *, now: int | None = None
    ) -> None:
        """Say how far a job has come: pages show it live. Raises LeaseLost."""
        self._queues.progress(job, done, total, note, now)

    def sweep(self, machine: str, *, now: int | None = None) -> int:
        """Take back jobs whose lease ran out and wake those that are due; how many moved."""
        return self._queues.sweep(machine, now)

    def mend(self, machine: str, *, now: int | None = None) -> MendReport:
        """Put every job where its hash says it is, after keys were damaged from outside; what was mended.

        Reads the whole keyspace, in small steps. A job that is leased in no lease gets one, which a live worker renews;
        where it should be over, ten seconds at most, and then it is taken back like any other.
        """
        self._catalog.partitions(machine)  # raises when there is none
        return finish_walk(MendWalk(self._caller, self.keys, machine), now)

    def mending(self) -> MendWalk:
        """The same for all machines, step by step."""
        return MendWalk(self._caller, self.keys)

    # Operating

    def pause(self, machine: str, queue: str, *, actor: str, reason: str, now: int | None = None) -> None:
        """No job of the queue is handed out until it is resumed; those in hand may finish, others may come."""
        self._operator.hold(machine, queue, "pause", actor, reason, now)

    def resume_queue(self, machine: str, queue: str, *, actor: str, reason: str, now: int | None = None) -> None:
        self._operator.hold(machine, queue, "resume", actor, reason, now)

    def paused(self, machine: str) -> dict[str, Pause]:
        """Queue -> since when and by whom, of those that are paused."""
        return {name: found.paused for name, found in self.stats(machine).items() if found.paused is not None}

    def limit(
        self,
        machine: str,
        queue: str,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        actor: str = "",
        reason: str = "",
    ) -> None:
        """How many jobs of a queue may be leased at a time, and how fast they are handed out ("100/s").

        None: what the current definition declares, if anything. 0 and "none": no limit, whatever it declares. Both are
        exact on one partition; of several, each keeps its share, at least one job at a time.
        """
        self._operator.limit(machine, queue, concurrency, rate, actor, reason)

    def purge(
        self,
        machine: str,
        queue: str,
        *,
        place: str,
        expect: int | None = None,
        actor: str,
        reason: str,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> int:
        """Take all jobs of one place (ready, delayed or dead) away for good; how many. With ``expect``, only when there
        are exactly that many; else Miscounted. Instances that wait for one get ``error.invoke.<id>``, kind "Purged".

        ``permit``: what the person behind the call may, None for a program; with one, what does the same as a repair
        that takes a second person (``cancel``; of the two below ``retry``) raises NeedsApproval, or is passed over.
        """
        return self._operator.purge(machine, queue, place, expect, actor, reason, now, permit)

    def redrive(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        actor: str,
        reason: str,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> int:
        """Make one dead job, or all of a queue, ready again with all attempts before them; how many moved.

        An instance still in the state that asked for the work waits for it again; one that moved on stays where it is.
        A job whose unique key has another open job stays dead.
        """
        return self._operator.redrive(machine, queue, "dead", job, actor, reason, now, permit)

    def move_now(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        actor: str,
        reason: str,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> int:
        """Make one delayed job, or all of a queue, ready at once; how many moved."""
        return self._operator.redrive(machine, queue, "delayed", job, actor, reason, now, permit)

    def withdraw(
        self,
        machine: str,
        job: Job | str,
        *,
        actor: str,
        reason: str,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> None:
        """Take one job away, wherever it is. Its instance gets ``error.invoke.<id>``, kind "Withdrawn"; a worker that
        runs it learns so with its next heartbeat. Raises LookupFailed."""
        self._operator.withdraw(machine, job, actor, reason, now, permit)

    # Looking

    def stats(self, machine: str) -> dict[str, QueueStats]:
        """Queue -> its depths, counters, histograms, limits."""
        return self._operator.stats(machine)

    def ready(self, queues: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of the queues, (machine, queue), that hold ready jobs."""
        return self._lookout.ready(queues)

    def queue_names(self, machines: Iterable[str]) -> list[tuple[str, str]]:
        """(machine, queue) of every queue these machines ever had."""
        return self._lookout.names(machines)

    def bells(self, machine: str, queue: str) -> list[str]:
        """The keys that are pushed to when a job comes to the queue, one for each partition."""
        return self._queues.bells(machine, queue)

    def jobs(self, machine: str, queue: str, *, place: str = "ready", limit: int = 50, offset: int = 0) -> list[Job]:
        """Those that come first in their place (of the dead, the newest), after ``offset`` others."""
        return self._queues.jobs(machine, queue, place, limit, offset)

    def job(self, machine: str, id: str) -> Job:
        """Raises LookupFailed when the job is finished or withdrawn."""
        return self._queues.job(machine, id)
