"""The methods of the engine about jobs and queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Unpack

from machines.engine.connection.calls import Caller
from machines.engine.errors import SignalboxError
from machines.engine.keys import Keys
from machines.engine.permits import Permit
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance, Outcome, PartialDict, PartialList

from .clock_jump import ClockBounds
from .lifecycle import Queues
from .mending import MendReport, MendWalk, finish_walk
from .queue_operations import QueueOperations
from .ready_queues import ReadyQueues
from .records import Enqueue, EnqueueOptions, Job, Pause, QueueStats, Taken


class JobMethods:
    """Jobs and queues: a part of ``Engine``. Times given as ``now`` replace the server's clock."""

    _queues: Queues
    _queue_operations: QueueOperations
    _ready_queues: ReadyQueues
    _caller: Caller
    _catalog: Catalog
    keys: Keys

    # Enqueue

    def enqueue(
        self,
        machine: str,
        src: str,
        input: Any = None,
        *,
        key: str | None = None,
        now: int | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job:
        """Put a job without an instance on a queue (by default the one named like ``src``) and return it.

        ``key``: an idempotency key; for a day, the same key returns the first job, also when it has ended.
        ``options``: as in ``enqueue("door", "paint", priority=9)`` (``EnqueueOptions``).
        """
        return self._queues.enqueue(Enqueue(machine, src, input, key=key, now=now, **options))

    def enqueue_many(self, items: Iterable[Enqueue | Mapping[str, Any]]) -> list[Job | SignalboxError]:
        """Put many jobs on queues in one round trip; return, in order, the job or the error of each. A hundred jobs of
        one partition are enqueued together, or not at all."""
        return self._queues.enqueue_many(items)

    # Take and end

    def take(
        self,
        machine: str,
        queue: str,
        worker: str,
        *,
        count: int = 1,
        lease: int | None = None,
        partitions: Collection[int] | None = None,
        now: int | None = None,
    ) -> Taken:
        """Take up to ``count`` ready jobs, each leased to ``worker`` for ``lease`` ms (None: as the definition says).
        ``partitions``: the numbers of those to take from; None for all."""
        return self._queues.take(machine, queue, worker, count, lease, now, partitions)

    def complete(self, job: Job, result: Any = None, *, now: int | None = None) -> Instance | None:
        """End a job and move its instance in one call; return the instance, or None for a job without one.

        Raises LeaseLost when the token no longer holds the job, Refused when the step fails (the job is then still
        held).
        """
        return self._queues.complete(job, result, now)

    def complete_many(
        self, ends: Iterable[tuple[Job, Any]], *, now: int | None = None
    ) -> list[Outcome | SignalboxError | None]:
        """End many jobs in one round trip, each as ``complete`` does; return, in order, the outcome of each, None for a
        job without an instance, or its error."""
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
        """End an attempt as failed; return "delayed" when there is another attempt, "dead" when there is none. The
        instance of a dead job gets ``error.invoke.<id>`` in the same step.

        ``kind`` names the exception, ``kinds`` its base classes: a job whose definition stops at one of them is not
        retried. ``delay``: ms until the next attempt, in place of the backoff. Raises LeaseLost.
        """
        return self._queues.fail(job, error, kind, trace, "1" if retry else "0", now, delay, kinds)

    def hand_back(self, job: Job, *, delay: int = 0, now: int | None = None) -> None:
        """Return a job that was not run, without counting the attempt: ready again after ``delay`` ms. Raises
        LeaseLost."""
        self._queues.fail(job, "", "", "", "return", now, delay)

    def extend(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[bool]:
        """Renew leases to ``lease`` ms from now, none past its job's deadline; return for each, in order, whether it is
        held."""
        return [not why for why in self.renew(jobs, lease, now=now)]

    def renew(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[str]:
        """Renew leases like ``extend``; return for each "" when it is held, else "taken back", "withdrawn" or
        "gone"."""
        return self._queues.renew([jobs] if isinstance(jobs, Job) else list(jobs), lease, now)

    def progress(
        self, job: Job, done: float, total: float | None = None, note: str = "", *, now: int | None = None
    ) -> None:
        """Report the progress of a job, which pages show live. Raises LeaseLost."""
        self._queues.progress(job, done, total, note, now)

    def sweep(
        self,
        machine: str,
        *,
        partitions: Collection[int] | None = None,
        clock: ClockBounds | None = None,
        now: int | None = None,
    ) -> int:
        """Take back jobs whose lease ran out and make due jobs ready; return how many moved. ``partitions``: the
        numbers of those to sweep; None for all. ``clock``: what is known of the servers' clocks."""
        return self._queues.sweep(machine, now, partitions, clock)

    def mend(self, machine: str, *, now: int | None = None) -> MendReport:
        """Put every job where its hash says it is, after keys were damaged from outside; return what was repaired.

        Reads the whole keyspace in small steps. A leased job without a lease gets one, which a live worker renews; a
        job past its deadline gets ten seconds at most and is then taken back like any other.
        """
        self._catalog.partitions(machine)  # raises when there is none
        return finish_walk(MendWalk(self._caller, self.keys, machine), now)

    def mending(self) -> MendWalk:
        """Return the same for all machines, step by step."""
        return MendWalk(self._caller, self.keys)

    # Operate

    def pause(self, machine: str, queue: str, *, actor: str, reason: str, now: int | None = None) -> None:
        """Pause a queue: no job is taken until it is resumed. Running jobs may finish, new jobs may be enqueued."""
        self._queue_operations.set_pause(machine, queue, "pause", actor, reason, now)

    def resume_queue(self, machine: str, queue: str, *, actor: str, reason: str, now: int | None = None) -> None:
        """End the pause of a queue."""
        self._queue_operations.set_pause(machine, queue, "resume", actor, reason, now)

    def list_pauses(self, machine: str) -> dict[str, Pause]:
        """Return queue -> pause, of the queues that are paused."""
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
        """Limit how many jobs of a queue may be leased at a time, and how fast they are taken ("100/s").

        None: the limit of the current definition, if any. 0 and "none": no limit, whatever the definition says. Limits
        are exact on one partition; of several, each has its share, at least one job at a time.
        """
        self._queue_operations.limit(machine, queue, concurrency, rate, actor, reason)

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
        """Remove all jobs of one place (ready, delayed, dead or handled); return how many. With ``expect``, only
        when there are exactly that many; else Miscounted. Their instances get ``error.invoke.<id>``, kind "Purged".

        ``permit``: the rights of the person behind the call, None for a program. With a permit, an action that equals a
        repair for which the definition requires a second person (here ``cancel``; for ``redrive`` and ``move_now``
        ``retry``) raises NeedsApproval for one job and skips the job among several.
        """
        return self._queue_operations.purge(machine, queue, place, expect, actor, reason, now, permit)

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
        force: bool = False,
    ) -> int:
        """Make one dead job, or all of a queue, ready again with their attempts reset; return how many moved.

        An instance still in the state that asked for the job waits for it again; one that moved on stays where it is. A
        job whose unique key has another open job stays dead. Handled jobs stay: one alone raises JobHandled unless
        ``force``; no instance waits for its result then.
        """
        return self._queue_operations.redrive(machine, queue, "dead", job, actor, reason, now, permit, force)

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
        """Make one delayed job, or all of a queue, ready at once; return how many moved."""
        return self._queue_operations.redrive(machine, queue, "delayed", job, actor, reason, now, permit)

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
        """Withdraw one job, wherever it is. Its instance gets ``error.invoke.<id>``, kind "Withdrawn"; a worker that
        runs it learns of it with its next heartbeat. Raises LookupFailed."""
        self._queue_operations.withdraw(machine, job, actor, reason, now, permit)

    # Read

    def stats(self, machine: str) -> PartialDict[QueueStats]:
        """Return queue -> its depths, counters, histograms and limits. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return self._queue_operations.stats(machine)

    def ready(self, queues: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """List those of the queues, (machine, queue), that hold ready jobs."""
        return list(self._ready_queues.find(queues))

    def ready_partitions(self, queues: Iterable[tuple[str, str]]) -> dict[tuple[str, str], set[int]]:
        """Return (machine, queue) -> the numbers of its partitions that hold ready jobs, for queues that have any."""
        return self._ready_queues.find(queues)

    def queue_names(self, machines: Iterable[str]) -> PartialList[tuple[str, str]]:
        """List (machine, queue) for every queue these machines ever had. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return self._ready_queues.list_queues(machines)

    def bells(self, machine: str, queue: str) -> list[str]:
        """List the keys that are pushed to when a job comes to the queue, one for each partition."""
        return self._queues.bells(machine, queue)

    def jobs(
        self, machine: str, queue: str, *, place: str = "ready", limit: int = 50, offset: int = 0
    ) -> PartialList[Job]:
        """List the first jobs of a place (of the dead and handled, the newest) after ``offset`` others. The attribute
        ``missing`` of the result lists the roots of partitions that did not answer."""
        return self._queues.jobs(machine, queue, place, limit, offset)

    def job(self, machine: str, id: str) -> Job:
        """Read one job. Raises LookupFailed when it is finished or withdrawn."""
        return self._queues.job(machine, id)
