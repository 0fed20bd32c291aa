"""The engine for asyncio, made of the methods of ``Engine`` by ``tests.engine.aio.method_generator``.

Do not edit: a test holds this file against ``Engine``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Unpack

from machines.engine.connection.library_loader import Visit
from machines.engine.connection.partition_check import PartitionFault
from machines.engine.definitions.compiled import CompiledDefinition
from machines.engine.definitions.findings import Finding
from machines.engine.engine import Data, Engine, GuardSettings
from machines.engine.errors import SignalboxError
from machines.engine.instances.inspection import Inspection
from machines.engine.instances.repairs import HoldOptions, Preview, RepairOptions, Wait
from machines.engine.instances.retirement import Batch, FinishedInstance, Retired, Retirement
from machines.engine.jobs.batches import Item
from machines.engine.jobs.clock_jump import ClockBounds
from machines.engine.jobs.mending import MendReport
from machines.engine.jobs.queue_operations import PauseOptions, QueueOptions
from machines.engine.jobs.records import Enqueue, EnqueueOptions, Job, JobBatch, Pause, QueueStats, Taken, WorkerInfo
from machines.engine.keys import Partition
from machines.engine.messages.delivery import DeliveryReport
from machines.engine.messages.emitted import EmittedLogs, LogEnd, Place
from machines.engine.permits import Permit
from machines.engine.publishing.machine_meta import SensitiveFields
from machines.engine.records import (
    Explanation,
    Fire,
    Instance,
    Live,
    Outcome,
    PartialDict,
    PartialList,
    PublishedMachine,
    Step,
)
from machines.engine.search.filters import SearchTerms
from machines.engine.search.page_merge import IndexProgress, Page, Problem, Tally
from machines.engine.search.survey import Survey
from machines.engine.simulation import SimulatedStep
from machines.engine.verification.report import VerificationFinding
from machines.engine.versions.planning.plan import MigrationPlan
from machines.engine.versions.records import DefinitionDiff, DryRun, Migrated, MigrationClass, Replay
from machines.engine.versions.rollout.records import Rollout, VersionChoice, VersionFigures, VersionPin, Withdrawal
from machines.engine.versions.rollout.rollouts import PolicyOptions

from .calls import AsyncCalls, AsyncPart


class AsyncEmittedLogs(AsyncPart[EmittedLogs]):
    """The methods of ``EmittedLogs``, awaited."""

    async def now(self) -> int:
        """Return ms since the epoch by the server's clock, which makes the ids; on a cluster, by the slowest clock."""
        return await self._call(EmittedLogs.now)

    async def log_steps(self, machine: str, *, seconds: float) -> list[Place]:
        """Have every step of a machine written to its logs for some time, 30 days at most; 0 ends it.

        Returns the places in which steps were not logged until now: what happened there before is in no log. Raises
        UnknownMachine, EngineUnavailable.
        """
        return await self._call(EmittedLogs.log_steps, machine, seconds=seconds)

    async def places(self) -> list[Place]:
        """List every partition of every machine. One round trip."""
        return await self._call(EmittedLogs.places)

    async def ends(self, places: Iterable[Place] | None = None) -> dict[Place, LogEnd]:
        """Return the end of these logs, or of all, in two round trips. An empty log ends at its start. Logs of
        partitions that do not answer are left out."""
        return await self._call(EmittedLogs.ends, places)

    async def find_new(self, known: Mapping[Place, str], *, wait: float = 0.0) -> list[Place]:
        """List the places whose logs have entries after the known id. One command, which waits up to ``wait``
        seconds; on a cluster one for each place, which do not wait."""
        return await self._call(EmittedLogs.find_new, known, wait=wait)

    async def root(self, place: Place) -> str:
        """Return the root of a place's keys."""
        return await self._call(EmittedLogs.root, place)


class AsyncRetirement(AsyncPart[Retirement]):
    """The methods of ``Retirement``, awaited."""

    async def partitions(self, machine: str) -> list[Partition]:
        """List the partitions of a machine. Raises UnknownMachine."""
        return await self._call(Retirement.partitions, machine)

    async def final_states(self, machine: str) -> list[str]:
        """List the final states, in any published version, in which an instance can have ended."""
        return await self._call(Retirement.final_states, machine)

    async def count(self, machine: str, before: int | None = None) -> int:
        """Count the finished instances, or those that finished at or before a time in ms."""
        return await self._call(Retirement.count, machine, before)

    async def find_oldest(self, machine: str) -> int | None:
        """Return the ms at which the oldest finished instance ended; None where there is none."""
        return await self._call(Retirement.find_oldest, machine)

    async def find_cutoff(self, machine: str, most: int, now: int) -> int | None:
        """Return a time in ms at or before which instances have to go so that at most ``most`` finished ones are left;
        None where there are no more than that. Some 40 round trips of ZCOUNT where there are."""
        return await self._call(Retirement.find_cutoff, machine, most, now)

    async def read(
        self, machine: str, partition: Partition, state: str, before: int, *, skip: int, limit: int
    ) -> Batch:
        """Read up to ``limit`` instances that entered a final state at or before a time, the oldest first; ``skip``:
        those to pass over. Two round trips."""
        return await self._call(Retirement.read, machine, partition, state, before, skip=skip, limit=limit)

    async def retire(self, batch: Batch, *, actor: str = "", reason: str = "") -> Retired:
        """Remove the instances of a batch that are finished and unchanged; the others stay. Atomic, up to some 2 ms:
        as many calls as that takes."""
        return await self._call(Retirement.retire, batch, actor=actor, reason=reason)

    async def trim_log(self, partition: Partition, before: int, most: int = 10000) -> int:
        """Remove log entries from before a time in ms that no consumer group needs; return how many went."""
        return await self._call(Retirement.trim_log, partition, before, most)

    async def queues(self, partition: Partition) -> list[str]:
        """List the queues that a partition has ever had."""
        return await self._call(Retirement.queues, partition)

    async def purge_dead(
        self, partition: Partition, queue: str, before: int, *, actor: str = "", limit: int = 100
    ) -> int:
        """Delete dead and handled jobs that died at or before a time in ms; return how many. An instance that waits
        for one gets ``error.invoke.<id>`` with the kind Purged, as after a purge by an operator."""
        return await self._call(Retirement.purge_dead, partition, queue, before, actor=actor, limit=limit)

    async def decode(self, found: FinishedInstance) -> tuple[Instance, list[Step]]:
        """Return an instance and its steps, newest first, as ``Engine.get`` and ``Engine.history`` do. Raises
        UnknownMachine where its version is no longer published."""
        return await self._call(Retirement.decode, found)

    async def measure_memory(self, machine: str, *, samples: int = 10) -> int:
        """Estimate the bytes that one finished instance takes in Redis, by MEMORY USAGE of the oldest ones; 0 where
        there is none, or where the account may not ask."""
        return await self._call(Retirement.measure_memory, machine, samples=samples)


class AsyncEngine(AsyncCalls):
    """Runs the state machines of one Redis from asyncio: the methods of ``Engine``, awaited, with the same records and
    errors.

    Safe to share between the tasks of one event loop; make one per loop, with ``from_url``. Calls of all tasks go over
    one connection, written together, and none of them blocks the loop. A call whose task is cancelled, or that
    ``asyncio.timeout`` ends, may or may not have happened once it was sent: repeat it with a ``key``, or with the
    revision in ``expect``.
    """

    async def ping(self) -> None:
        """Raise EngineUnavailable unless Redis answers, of a cluster at least one primary."""
        await self._call(Engine.ping)

    async def read_clock(self) -> int:
        """Return the time of Redis in ms, of a cluster that of any node. Raises EngineUnavailable."""
        return await self._call(Engine.read_clock)

    async def name_nodes(self, keys: Sequence[str]) -> list[str]:
        """List the nodes of a cluster that hold these keys, as ``host:port``; none for a single server."""
        return await self._call(Engine.name_nodes, keys)

    async def load_library(self, *, again: bool = True) -> list[Visit]:
        """Load the functions library now, in place of the one the server has, unless that is a newer release's; return
        what became of each server. ``again``: also over this very one. Normally the first call does this. Raises
        LibraryNotLoaded for an account that may not load, EngineFault for data of a newer release (SB512)."""
        return await self._call(Engine.load_library, again=again)

    async def load_missing_library(self) -> None:
        """Load the functions library because the server lacks a function. Raises EngineFault where the library of
        another release stays."""
        await self._call(Engine.load_missing_library)

    async def require_library(self) -> None:
        """Make sure that the server holds a functions library that this release works with, and data that it can read;
        load this release's library where there is none or an older one.

        A library of a newer release stays: calls work with it. Raises EngineUnavailable or EngineFault, whose message
        names the command to run where this account may not load.
        """
        await self._call(Engine.require_library)

    async def check_partitions(self) -> list[PartitionFault]:
        """List the partitions of published machines that are split over nodes, on their way, unserved or incomplete.
        Reads only; it asks every node of a cluster about each slot."""
        return await self._call(Engine.check_partitions)

    async def publish(
        self,
        definition: dict[str, Any] | CompiledDefinition,
        *,
        version: int | None = None,
        alone: bool = False,
        rollout: float | None = None,
        guard: GuardSettings = None,
        actor: str = "",
        reason: str = "",
    ) -> PublishedMachine:
        """Check, compile and store a definition as the machine's current version. A compiled definition is only stored.

        The same content again is the same version. ``version`` publishes under a known number, to restore a backup.
        ``alone``: without the machines embedded in it. ``rollout``: the percentage of new instances that get the
        version, for ``actor`` and ``reason``; the current one stays. ``guard``: when that stops by itself, False for
        never. Without ``rollout`` a new version ends the roll-out of another. Raises DefinitionError with every
        finding, VersionRefused.
        """
        return await self._call(
            Engine.publish,
            definition,
            version=version,
            alone=alone,
            rollout=rollout,
            guard=guard,
            actor=actor,
            reason=reason,
        )

    async def machines(self) -> dict[str, int]:
        """Return machine name -> number of its current version."""
        return await self._call(Engine.machines)

    async def current_versions(self) -> dict[str, str]:
        """Return machine name -> ``<version>:<digest>`` of the current version; no other content has the same."""
        return await self._call(Engine.current_versions)

    async def recent_versions(self) -> dict[str, str]:
        """Return the same for duties that ask again and again: what an earlier release publishes is seen after five
        minutes."""
        return await self._call(Engine.recent_versions)

    async def catalog_revision(self) -> str:
        """Return a text that changes when a machine is published or deleted: cheap, for callers that look often. A
        publication by an earlier release may not change it."""
        return await self._call(Engine.catalog_revision)

    async def versions(self, machine: str) -> list[int]:
        """List the numbers of a machine's published versions. Raises UnknownMachine."""
        return await self._call(Engine.versions, machine)

    async def definition(self, machine: str, version: int | None = None) -> dict[str, Any]:
        """Return the definition as it was published, by default the current version. Raises UnknownMachine."""
        return await self._call(Engine.definition, machine, version)

    async def count_partitions(self, machine: str) -> int:
        """Return the number of partitions that a machine got with its first publication. Raises UnknownMachine."""
        return await self._call(Engine.count_partitions, machine)

    async def list_partition_counts(self) -> dict[str, int]:
        """Return machine -> number of its partitions; on a cluster the last copy while the list does not answer."""
        return await self._call(Engine.list_partition_counts)

    async def sensitive(self, machine: str) -> SensitiveFields:
        """Return the fields that any published version marks as sensitive. The engine itself returns them in clear:
        the code that shows data to people redacts it. Raises UnknownMachine."""
        return await self._call(Engine.sensitive, machine)

    async def encrypt(self, machine: str, value: Any) -> Any:
        """Return data or a payload with the values of encrypted fields as ciphertexts, as every call sends them: for
        what is stored elsewhere until it is sent. Raises BadPayload, EncryptionFailed."""
        return await self._call(Engine.encrypt, machine, value)

    async def encrypt_terms(self, machine: str, where: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the ``where`` of a search with the values of encrypted fields as ciphertexts. Raises BadInput."""
        return await self._call(Engine.encrypt_terms, machine, where)

    async def decrypt(self, value: Any, *, machine: str | None = None, found: set[str] | None = None) -> Any:
        """Return a value with every ciphertext in it decrypted, at any depth; add the texts of what was decrypted to
        ``found``. Raises EncryptionFailed; with ``machine`` only for the fields that it encrypts."""
        return await self._call(Engine.decrypt, value, machine=machine, found=found)

    async def decrypt_for_people(self, machine: str, value: Any) -> Any:
        """Return a value with the ciphertexts of the machine's encrypted fields decrypted, and words in place of what
        cannot be decrypted now."""
        return await self._call(Engine.decrypt_for_people, machine, value)

    async def missing_commands(self) -> list[str]:
        """List the commands that a step runs and the account in use may not run, as ACL SETUSER names them. Raises
        EngineFault where a library of another release is loaded."""
        return await self._call(Engine.missing_commands)

    def emitted_logs(self) -> AsyncEmittedLogs:
        """Return a reader of the logs of what machines emitted, as far as the logs are kept."""
        return AsyncEmittedLogs(self, Engine.emitted_logs)

    def retirement(self) -> AsyncRetirement:
        """Return what lets go of finished instances, and reads those that were archived."""
        return AsyncRetirement(self, Engine.retirement)

    async def verify(
        self, definition: Mapping[str, Any] | CompiledDefinition | str, *, budget: int = 3000, seconds: float = 20.0
    ) -> list[VerificationFinding]:
        """Walk over what a machine can do, by the interpreter in Redis and without reading or writing a key; return
        what is wrong with it ("found", each with a run), what could not be decided, and what was proven.

        ``definition``: a definition, or the name of a published machine. ``budget``: snapshots to try at most;
        ``seconds``: how long at most. It assumes that instances are created with the values that the definition
        declares. ``docs/simulate-and-verify.md`` has the codes. Raises DefinitionError, BadInput, UnknownMachine.
        """
        return await self._call(Engine.verify, definition, budget=budget, seconds=seconds)

    async def new_id(self) -> str:
        """Make an id for records kept beside instances: it sorts by time and never repeats. Returns a random id when
        Redis is unavailable. Most calls need no round trip."""
        return await self._call(Engine.new_id)

    async def create(
        self,
        machine: str,
        id: str | None = None,
        data: Data | None = None,
        *,
        version: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        replicas: int | None = None,
    ) -> Instance:
        """Create an instance in its initial state and return it.

        Without an ``id`` it gets one that sorts by time; with a ``key``, the id that this key always makes, so that the
        same call sent twice creates one instance. ``replicas``: as of ``fire``. Raises InstanceExists, UnknownMachine,
        BadPayload, Refused (an entry action failed).
        """
        return await self._call(
            Engine.create,
            machine,
            id,
            data,
            version=version,
            key=key,
            actor=actor,
            reason=reason,
            now=now,
            replicas=replicas,
        )

    async def fire(
        self,
        machine: str,
        id: str,
        event: str,
        payload: Data | None = None,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        permit: Permit | None = None,
        replicas: int | None = None,
    ) -> Instance:
        """Send an event to an instance and return the instance as it is afterwards.

        ``expect`` is the revision the caller saw: any other raises Conflict. The same ``key`` again within a day
        returns the first outcome and changes nothing. ``permit``: the rights of the person behind the call; None for a
        program. ``replicas``: wait until so many replicas have written the step, by default as many as the engine's
        option says; ``outcome.replicated`` is the number that had it in time, and ``outcome.durability`` says it in
        words. Raises Refused, UnknownEvent, UnknownInstance, BadPayload; with a permit also NotAllowed and
        NeedsApproval.
        """
        return await self._call(
            Engine.fire,
            machine,
            id,
            event,
            payload,
            expect=expect,
            key=key,
            actor=actor,
            reason=reason,
            now=now,
            permit=permit,
            replicas=replicas,
        )

    async def fire_revision(
        self,
        machine: str,
        id: str,
        event: str,
        payload: Data | None = None,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        permit: Permit | None = None,
        replicas: int | None = None,
    ) -> int:
        """Send an event as ``fire`` does; return the instance's new revision alone, which is faster."""
        return await self._call(
            Engine.fire_revision,
            machine,
            id,
            event,
            payload,
            expect=expect,
            key=key,
            actor=actor,
            reason=reason,
            now=now,
            permit=permit,
            replicas=replicas,
        )

    async def fire_many(
        self, calls: Iterable[Fire | Mapping[str, Any] | Sequence[Any]], *, replicas: int | None = None
    ) -> list[Instance | SignalboxError]:
        """Send many events in one round trip, two for large batches; return, in order, the new instance or the error of
        each.

        Each event is a step of its own: one that is refused does not stop the others. ``replicas``: as of ``fire``,
        waited for once on each server.
        """
        return await self._call(Engine.fire_many, calls, replicas=replicas)

    async def fire_revisions(
        self, calls: Iterable[Fire | Mapping[str, Any] | Sequence[Any]], *, replicas: int | None = None
    ) -> list[int | SignalboxError]:
        """Send many events as ``fire_many`` does; return, in order, the new revision or the error of each."""
        return await self._call(Engine.fire_revisions, calls, replicas=replicas)

    async def survey(self, *, trust: bool = False) -> Survey:
        """Read all machines, their queues and the workers, in few round trips however many there are. What did not
        change since the last call in this process is not read again. With ``trust`` the servers' memory says what
        changed, for callers that ask again and again: after a failover figures may then be five minutes old."""
        return await self._call(Engine.survey, trust=trust)

    async def tick(self, machine: str | None = None, *, now: int | None = None) -> int:
        """Do the periodic work once, as every live process does all the time; return how many timers, jobs and messages
        moved.

        Takes back expired leases, fires due timers, delivers messages. ``now`` replaces the server's clock.
        """
        return await self._call(Engine.tick, machine, now=now)

    async def advance(self, machine: str, *, now: int | None = None) -> tuple[int, int | None]:
        """Do what is due in one machine and deliver its messages; return how many moved, and ms of its next timer or
        None.

        Timers fire, expired leases are taken back, delayed jobs become ready.
        """
        return await self._call(Engine.advance, machine, now=now)

    async def drive(
        self, machines: Iterable[str], *, now: int | None = None, retry: bool = False, look: bool = True
    ) -> DeliveryReport:
        """Do what is due in several machines and deliver their messages: one round trip when nothing is due. Machines
        that no longer exist are skipped.

        A message that could not be delivered is tried again after a pause, and with ``retry`` at once. Without ``look``
        the server answers from its memory where it knows that nothing is due, and reads no key: for callers that call
        often.
        """
        return await self._call(Engine.drive, machines, now=now, retry=retry, look=look)

    async def drive_roots(
        self, roots: Sequence[str], *, look: bool, clock: ClockBounds | None = None
    ) -> DeliveryReport:
        """Do the same in single partitions, given by their roots. ``DeliveryReport.dues`` says when each is due
        next. Where the clock is later than it can be by ``clock``, nothing is done."""
        return await self._call(Engine.drive_roots, roots, look=look, clock=clock)

    async def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row; return the order that waits for it, ``{"order", "actor", "reason", "at"}``, or None."""
        return await self._call(Engine.beat, row)

    async def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Order a worker to be "quiet" (take no further jobs), to "work" again, or to "stop" as after SIGTERM.

        The worker obeys with its next heartbeat. Raises LookupFailed for a worker without a row.
        """
        await self._call(Engine.direct, worker, order, actor=actor, reason=reason)

    async def leave(self, worker: str) -> None:
        """Remove a worker's row, as it stops."""
        await self._call(Engine.leave, worker)

    async def workers(self) -> PartialList[WorkerInfo]:
        """List the workers that are alive. The attribute ``missing`` of the result lists the keys that did not
        answer."""
        return await self._call(Engine.workers)

    async def pause(
        self, machine: str, queue: str, *, group: str | None = None, **options: Unpack[PauseOptions]
    ) -> None:
        """Pause a queue, or one group of it: no job is taken until it is resumed. Running jobs may finish, new jobs may
        be enqueued."""
        await self._call(Engine.pause, machine, queue, group=group, **options)

    async def resume_queue(
        self, machine: str, queue: str, *, group: str | None = None, **options: Unpack[PauseOptions]
    ) -> None:
        """End the pause of a queue, or of one group of it."""
        await self._call(Engine.resume_queue, machine, queue, group=group, **options)

    async def list_pauses(self, machine: str) -> dict[str, Pause]:
        """Return queue -> pause, of the queues that are paused."""
        return await self._call(Engine.list_pauses, machine)

    async def limit(
        self,
        machine: str,
        queue: str,
        *,
        group: str | None = None,
        concurrency: int | None = None,
        rate: str | None = None,
        actor: str = "",
        reason: str = "",
    ) -> None:
        """Limit how many jobs of a queue, or of one group of it, may be leased at a time, and how fast they are taken
        ("100/s", "5/s burst 20").

        None: the limit of the current definition, if any. 0 and "none": no limit, whatever the definition says. They
        hold for all partitions together, and count jobs that run already.
        """
        await self._call(
            Engine.limit, machine, queue, group=group, concurrency=concurrency, rate=rate, actor=actor, reason=reason
        )

    async def purge(
        self, machine: str, queue: str, *, place: str, expect: int | None = None, **options: Unpack[QueueOptions]
    ) -> int:
        """Remove all jobs of one place (ready, delayed, dead or handled); return how many. With ``expect``, only
        when there are exactly that many; else Miscounted. Their instances get ``error.invoke.<id>``, kind "Purged"."""
        return await self._call(Engine.purge, machine, queue, place=place, expect=expect, **options)

    async def redrive(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        force: bool = False,
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> int:
        """Make one dead job, or all of a queue, ready again with their attempts reset; return how many moved.

        An instance still in the state that asked for the job waits for it again; one that moved on stays where it is. A
        job whose unique key has another open job stays dead. Handled jobs stay: one alone raises JobHandled unless
        ``force``; no instance waits for its result then. ``unchanged``, with one job: as of ``withdraw``.
        """
        return await self._call(Engine.redrive, machine, queue, job, force=force, unchanged=unchanged, **options)

    async def move_now(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> int:
        """Make one delayed job, or all of a queue, ready at once; return how many moved. ``unchanged``, with one job:
        as of ``withdraw``."""
        return await self._call(Engine.move_now, machine, queue, job, unchanged=unchanged, **options)

    async def reschedule(
        self,
        machine: str,
        job: Job | str,
        *,
        until: int | None = None,
        queue: str = "",
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> bool:
        """Have a ready or delayed job wait until a time (ms since the epoch), or move it to another queue; return
        whether it moved. It stays when another open job of that queue has its unique key. ``unchanged``: as of
        ``withdraw``."""
        return await self._call(
            Engine.reschedule, machine, job, until=until, queue=queue, unchanged=unchanged, **options
        )

    async def withdraw(
        self, machine: str, job: Job | str, *, unchanged: bool = False, **options: Unpack[QueueOptions]
    ) -> bool:
        """Withdraw one job, wherever it is; return whether it was there. ``unchanged``: only while it is where the
        record says, since then. Its instance gets ``error.invoke.<id>``, kind "Withdrawn"; a worker that runs it learns
        of it with its next heartbeat. Raises LookupFailed."""
        return await self._call(Engine.withdraw, machine, job, unchanged=unchanged, **options)

    async def mend(self, machine: str, *, now: int | None = None) -> MendReport:
        """Put every job where its hash says it is, after keys were damaged from outside; return what was repaired.

        Reads the whole keyspace in small steps. A leased job without a lease gets one, which a live worker renews; a
        job past its deadline gets ten seconds at most and is then taken back like any other.
        """
        return await self._call(Engine.mend, machine, now=now)

    async def ready(self, queues: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """List those of the queues, (machine, queue), that hold ready jobs."""
        return await self._call(Engine.ready, queues)

    async def ready_partitions(self, queues: Iterable[tuple[str, str]]) -> dict[tuple[str, str], set[int]]:
        """Return (machine, queue) -> the numbers of its partitions that hold ready jobs, for queues that have any."""
        return await self._call(Engine.ready_partitions, queues)

    async def queue_names(self, machines: Iterable[str]) -> PartialList[tuple[str, str]]:
        """List (machine, queue) for every queue these machines ever had. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return await self._call(Engine.queue_names, machines)

    async def stats(self, machine: str) -> PartialDict[QueueStats]:
        """Return queue -> its depths, counters, histograms and limits. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return await self._call(Engine.stats, machine)

    async def batch(
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
        return await self._call(
            Engine.batch, jobs, on_success=on_success, on_failure=on_failure, on_end=on_end, id=id, now=now
        )

    async def add_to_batch(
        self, machine: str, id: str, jobs: Iterable[Item], *, key: str | None = None, now: int | None = None
    ) -> JobBatch:
        """Add jobs to a batch that has not ended, as one of its jobs may do. ``key``: an idempotency key; the same key
        adds only what is missing. Raises LookupFailed."""
        return await self._call(Engine.add_to_batch, machine, id, jobs, key=key, now=now)

    async def get_batch(self, machine: str, id: str) -> JobBatch:
        """Read a batch. Raises LookupFailed when there is none: it is kept for a week after its end."""
        return await self._call(Engine.get_batch, machine, id)

    async def get_batch_of(self, job: Job) -> JobBatch:
        """Read the batch of a job, on the partition of the job alone. Raises LookupFailed when there is none."""
        return await self._call(Engine.get_batch_of, job)

    async def enqueue(
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
        ``options``: as in ``enqueue("order", "charge", priority=9)`` (``EnqueueOptions``).
        """
        return await self._call(Engine.enqueue, machine, src, input, key=key, now=now, **options)

    async def enqueue_many(self, items: Iterable[Enqueue | Mapping[str, Any]]) -> list[Job | SignalboxError]:
        """Put many jobs on queues in one round trip; return, in order, the job or the error of each. Fifty jobs of
        one partition are enqueued together, or not at all."""
        return await self._call(Engine.enqueue_many, items)

    async def take(
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
        return await self._call(
            Engine.take, machine, queue, worker, count=count, lease=lease, partitions=partitions, now=now
        )

    async def complete(self, job: Job, result: Any = None, *, now: int | None = None) -> Instance | None:
        """End a job and move its instance in one call; return the instance, or None for a job without one.

        Raises LeaseLost when the token no longer holds the job, Refused when the step fails (the job is then still
        held).
        """
        return await self._call(Engine.complete, job, result, now=now)

    async def complete_many(
        self, ends: Iterable[tuple[Job, Any]], *, now: int | None = None
    ) -> list[Outcome | SignalboxError | None]:
        """End many jobs in one round trip, each as ``complete`` does; return, in order, the outcome of each, None for a
        job without an instance, or its error."""
        return await self._call(Engine.complete_many, ends, now=now)

    async def fail(
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
        return await self._call(
            Engine.fail, job, error, kind=kind, trace=trace, retry=retry, delay=delay, kinds=kinds, now=now
        )

    async def hand_back(self, job: Job, *, delay: int = 0, now: int | None = None) -> None:
        """Return a job that was not run, without counting the attempt: ready again after ``delay`` ms. Raises
        LeaseLost."""
        await self._call(Engine.hand_back, job, delay=delay, now=now)

    async def extend(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[bool]:
        """Renew leases to ``lease`` ms from now, none past its job's deadline; return for each, in order, whether it is
        held."""
        return await self._call(Engine.extend, jobs, lease, now=now)

    async def renew(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[str]:
        """Renew leases like ``extend``; return for each "" when it is held, else "taken back", "withdrawn" or
        "gone"."""
        return await self._call(Engine.renew, jobs, lease, now=now)

    async def progress(
        self, job: Job, done: float, total: float | None = None, note: str = "", *, now: int | None = None
    ) -> None:
        """Report the progress of a job, which pages show live. Raises LeaseLost."""
        await self._call(Engine.progress, job, done, total, note, now=now)

    async def sweep(
        self,
        machine: str,
        *,
        partitions: Collection[int] | None = None,
        clock: ClockBounds | None = None,
        now: int | None = None,
    ) -> int:
        """Take back jobs whose lease ran out and make due jobs ready; return how many moved. ``partitions``: the
        numbers of those to sweep; None for all. ``clock``: what is known of the servers' clocks."""
        return await self._call(Engine.sweep, machine, partitions=partitions, clock=clock, now=now)

    async def force(
        self,
        machine: str,
        id: str,
        state: str | Sequence[str],
        *,
        data: Data | None = None,
        **options: Unpack[RepairOptions],
    ) -> Instance:
        """Put the instance into ``state`` and change ``data`` (None unsets), whatever its transitions say.

        In a chart with nested states, ``state`` may be compound, or several states of different regions; regions
        without a given state are entered by default. No entry or exit action runs, and no history state remembers;
        jobs, timers and children of the states left are ended, those of the states entered begin. The reason is
        required and stands in the history.
        """
        return await self._call(Engine.force, machine, id, state, data=data, **options)

    async def edit(self, machine: str, id: str, changes: Data, **options: Unpack[RepairOptions]) -> Instance:
        """Change data fields, None unsets; each is checked against its declared type. Nothing else happens: guards
        read the new data with the next event. Raises BadPayload."""
        return await self._call(Engine.edit, machine, id, changes, **options)

    async def reset(
        self, machine: str, id: str, *, keep_data: bool = False, **options: Unpack[RepairOptions]
    ) -> Instance:
        """Return the instance to the initial configuration of its own version, and, unless ``keep_data``, to the data
        of a new instance before its first action.

        Like ``force`` it runs no action; all jobs, timers, delayed events and children are ended, history states
        forget, and the initial states begin what they invoke. A suspended instance stays suspended.
        """
        return await self._call(Engine.reset, machine, id, keep_data=keep_data, **options)

    async def retry(self, machine: str, id: str, invoke: str, **options: Unpack[RepairOptions]) -> Instance:
        """Make the dead job of an active state's invoke ready again with its attempts reset, or a delayed one ready
        at once. Raises BadInput where there is no such job."""
        return await self._call(Engine.retry, machine, id, invoke, **options)

    async def skip(
        self, machine: str, id: str, invoke: str, result: Any = None, **options: Unpack[RepairOptions]
    ) -> Instance:
        """Withdraw the job of an invoke, and move the instance as if the job had ended with ``result``; actions run.

        Raises Refused where no transition takes its end, BadInput where none listens for it, Suspended.
        """
        return await self._call(Engine.skip, machine, id, invoke, result, **options)

    async def cancel(self, machine: str, id: str, invoke: str, **options: Unpack[RepairOptions]) -> Instance:
        """Withdraw the open job of an invoke, and move the instance by ``error.invoke.<id>``, kind "Withdrawn".
        Without a transition for that event the instance stays in its state. Raises BadInput, Suspended."""
        return await self._call(Engine.cancel, machine, id, invoke, **options)

    async def suspend(self, machine: str, id: str, **options: Unpack[HoldOptions]) -> Instance:
        """Suspend an instance: events raise ``Suspended``, timers wait, messages and finished jobs queue up in
        order."""
        return await self._call(Engine.suspend, machine, id, **options)

    async def resume(self, machine: str, id: str, *, overdue: str = "fire", **options: Unpack[HoldOptions]) -> Instance:
        """Resume a suspended instance; what waited for it is applied in the order it came.

        ``overdue``: timers "fire" at the time they were set for, at once when it has passed (the default), or "shift"
        by as long as the instance was suspended.
        """
        return await self._call(Engine.resume, machine, id, overdue=overdue, **options)

    async def delete(
        self,
        machine: str,
        id: str,
        *,
        actor: str = "",
        reason: str = "",
        expect: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """Remove an instance with its history and open jobs; return it as it was."""
        return await self._call(Engine.delete, machine, id, actor=actor, reason=reason, expect=expect, permit=permit)

    async def pin_instance(
        self, machine: str, id: str, pinned: bool = True, **options: Unpack[RepairOptions]
    ) -> Instance:
        """Pin an instance to its version, so that no plan moves it, or unpin it; a step in its history. Arguments and
        errors as of other repairs."""
        return await self._call(Engine.pin_instance, machine, id, pinned, **options)

    async def preview(
        self, machine: str, id: str, repair: str, *, expect: int | None = None, now: int | None = None, **asked: Any
    ) -> Preview:
        """Compute what a repair would do; change nothing. ``repair`` is the name of one of the methods above,
        ``asked`` its arguments except actor, reason and key. Raises what the repair would raise."""
        return await self._call(Engine.preview, machine, id, repair, expect=expect, now=now, **asked)  # type: ignore[arg-type]

    async def waits(self, machine: str, id: str) -> list[Wait]:
        """List the jobs that the active states asked for: where each is, dead ones included, and which repairs
        apply."""
        return await self._call(Engine.waits, machine, id)

    async def live(self, machine: str, *, now: int | None = None) -> Live:
        """Read counts, oldest entries, flow, queue depths and breaches; each partition in one atomic call.

        Partitions that do not answer are ``missing`` in the result. Raises EngineUnavailable where none answers.
        """
        return await self._call(Engine.live, machine, now=now)

    async def counts(self, machine: str) -> PartialDict[int]:
        """Count the instances in each leaf state; states without any have 0. The attribute ``missing`` of the result
        lists the roots of partitions that did not answer, whose instances are not counted."""
        return await self._call(Engine.counts, machine)

    async def queues(self, machine: str) -> PartialDict[dict[str, int]]:
        """Return queue -> number of jobs that are ready, leased, delayed, dead and handled. The attribute ``missing``
        of the result lists the roots of partitions that did not answer."""
        return await self._call(Engine.queues, machine)

    async def find(
        self,
        machine: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        newest: bool = False,
        now: int | None = None,
        partial: bool = True,
        most: int = 40000,
        seconds: float = 1.0,
        **terms: Unpack[SearchTerms],
    ) -> Page:
        """Return a page of instances by the time they entered their state, longest-staying first; or, where the index
        of a data field is narrower, in the order of its values. ``newest`` reverses both. ``terms``: what they have in
        common, as in ``find("door", state="Open", older_than=3600)`` (``SearchTerms``).

        One index is walked, everything else is compared, 2000 instances at most for each call: a page may be short and
        have a cursor. A search for words compares ``most`` instances, and begins no call after so many ``seconds``.
        Partitions that do not answer are ``missing`` in the page; with ``partial=False``, for programs that must see
        every instance, they raise EngineUnavailable. Raises BadInput where neither a state nor an index serves, and for
        a state, tag or field that no published version has, so that a typing error does not look like "none".
        """
        return await self._call(
            Engine.find,
            machine,
            limit=limit,
            cursor=cursor,
            newest=newest,
            now=now,
            partial=partial,
            most=most,
            seconds=seconds,
            **terms,
        )

    async def tally(
        self, machine: str, *, now: int | None = None, most: int = 20000, **terms: Unpack[SearchTerms]
    ) -> Tally:
        """Count the instances that ``find`` would list for the same terms, by leaf state and in all.

        State and age alone are counted exactly. Else the narrowest index is walked, in calls of a few ms, and ``most``
        instances at most are compared: beyond that the tally is not complete and says "at least". Raises as ``find``.
        """
        return await self._call(Engine.tally, machine, now=now, most=most, **terms)

    async def problems(self, machine: str, ids: Iterable[str]) -> dict[str, list[Problem]]:
        """Return id -> current problems, of those instances that have any; ``error=`` finds instances by them.
        Instances of partitions that do not answer are left out."""
        return await self._call(Engine.problems, machine, ids)

    async def find_machines(self, id: str, machines: Sequence[str], *, of: str = "instance") -> list[str]:
        """List the machines that have the instance, or the ``job``, of that id: one command each, in one round trip.
        Partitions that do not answer count as without it."""
        return await self._call(Engine.find_machines, id, machines, of=of)

    async def find_indexed(self, field: str, machines: Sequence[str]) -> list[str]:
        """List the machines that have a complete index of a field, by their first partition: one command each. Those
        whose first partition does not answer are left out."""
        return await self._call(Engine.find_indexed, field, machines)

    async def reindex(self, machine: str) -> int:
        """Add instances that are older than the declaration of an index to that index; return how many were looked at.

        Reads all instances in small calls while everything else goes on. Until it ends, ``find`` does not use the
        index; each instance that takes a step meanwhile is indexed by the step. Workers call this by themselves.
        """
        return await self._call(Engine.reindex, machine)

    async def fill_indexes(self, machine: str) -> int | None:
        """Call ``reindex`` where an index is incomplete and no other process fills it; return None where there is
        nothing to do."""
        return await self._call(Engine.fill_indexes, machine)

    async def index_progress(self, machine: str) -> IndexProgress | None:
        """Return which indexes are incomplete and how far they are filled; None when all are complete, or when the
        first partition, which knows, does not answer."""
        return await self._call(Engine.index_progress, machine)

    async def get(self, machine: str, id: str) -> Instance:
        """Read one instance. Raises UnknownInstance, UnknownMachine."""
        return await self._call(Engine.get, machine, id)

    async def get_many(self, machine: str, ids: Iterable[str]) -> list[Instance | SignalboxError]:
        """Return, in order, the instance of each id or its error. Raises UnknownMachine; EngineUnavailable where no
        partition answers."""
        return await self._call(Engine.get_many, machine, ids)

    async def explain_many(
        self, machine: str, ids: Iterable[str], event: str, payload: Mapping[str, Any] | None = None
    ) -> list[Explanation | SignalboxError]:
        """Compute what ``fire`` would do with each instance, in order; change nothing. Raises UnknownMachine,
        EngineUnavailable."""
        return await self._call(Engine.explain_many, machine, ids, event, payload)

    async def create_many(
        self,
        machine: str,
        instances: Mapping[str, Mapping[str, Any] | None],
        *,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
    ) -> list[Instance | SignalboxError]:
        """Create instances, id -> data, each as ``create`` does; return, in order, the instance or its error. One that
        fails does not stop the others. Raises UnknownMachine; EngineUnavailable where no partition answers, after which
        some may have been created."""
        return await self._call(Engine.create_many, machine, instances, actor=actor, reason=reason, now=now)

    async def explain(
        self, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None, *, now: int | None = None
    ) -> Explanation:
        """Compute what ``fire`` would do, and why; change nothing. Raises UnknownInstance, BadPayload."""
        return await self._call(Engine.explain, machine, id, event, payload, now=now)

    async def inspect(self, machine: str, id: str, *, events: Iterable[str] = (), steps: int = 100) -> Inspection:
        """Read an instance with its latest ``steps``, the jobs it waits for, and what these events would do: several
        calls in one round trip, not one atomic call. Raises UnknownInstance, UnknownMachine."""
        return await self._call(Engine.inspect, machine, id, events=events, steps=steps)

    async def explain_all(
        self, machine: str, id: str, events: Iterable[str], *, now: int | None = None
    ) -> dict[str, Explanation | SignalboxError]:
        """Compute what each of these events would do without a payload, or the error of that question; one round
        trip."""
        return await self._call(Engine.explain_all, machine, id, events, now=now)

    async def history(self, machine: str, id: str, *, limit: int = 100, before: int | None = None) -> list[Step]:
        """Return the latest steps, newest first; ``before`` is a revision, for the next page. Raises
        UnknownInstance."""
        return await self._call(Engine.history, machine, id, limit=limit, before=before)

    async def bells(self, machine: str, queue: str) -> list[str]:
        """List the keys that are pushed to when a job comes to the queue, one for each partition."""
        return await self._call(Engine.bells, machine, queue)

    async def jobs(
        self, machine: str, queue: str, *, place: str = "ready", limit: int = 50, offset: int = 0
    ) -> PartialList[Job]:
        """List the first jobs of a place (of the dead and handled, the newest) after ``offset`` others. The attribute
        ``missing`` of the result lists the roots of partitions that did not answer."""
        return await self._call(Engine.jobs, machine, queue, place=place, limit=limit, offset=offset)

    async def job(self, machine: str, id: str) -> Job:
        """Read one job. Raises LookupFailed when it is finished or withdrawn."""
        return await self._call(Engine.job, machine, id)

    async def diff(
        self, machine: str, a: int | dict[str, Any] | CompiledDefinition, b: int | dict[str, Any] | CompiledDefinition
    ) -> DefinitionDiff:
        """Compare two versions of a machine: numbers of published ones, or definitions that are drafts. ``a`` is the
        old one. Raises UnknownMachine, DefinitionError for a draft with errors, BadInput for one of another machine."""
        return await self._call(Engine.diff, machine, a, b)

    async def plan(
        self,
        machine: str,
        to: int,
        *,
        from_versions: Iterable[int] | None = None,
        states: Mapping[str, str | Sequence[str] | None] | None = None,
        data: Mapping[str, Any] | None = None,
        unmapped: str = "refuse",
        timers: str = "entry",
        removed: str = "drop",
        suspended: str = "move",
        actions: Iterable[str] = (),
        keep_undo: str = "7d",
    ) -> MigrationPlan:
        """Plan how instances of other versions get the version ``to``. Reads definitions; looks at no instance.

        ``from_versions``: by default every other published version. ``states``: state of an old version -> its place in
        the new one, several for regions, None for no place; states that are not named keep their name or their path.
        ``data``: field -> expression over the old data. The policies stand in ``docs/versions.md``. Raises PlanError
        with all findings, UnknownMachine.
        """
        return await self._call(
            Engine.plan,
            machine,
            to,
            from_versions=from_versions,
            states=states,
            data=data,
            unmapped=unmapped,
            timers=timers,
            removed=removed,
            suspended=suspended,
            actions=actions,
            keep_undo=keep_undo,
        )

    async def check_plan(self, plan: MigrationPlan) -> list[Finding]:
        """Compare a stored plan with the versions that are published now, and return its warnings. Raises PlanError:
        with the code SB606 where a version is gone or has other content, SB612 where the new one was
        withdrawn, else SB600; UnknownMachine."""
        return await self._call(Engine.check_plan, plan)

    async def migrate(self, plan: MigrationPlan, *, actor: str = "", reason: str = "", rate: int = 0) -> Migrated:
        """Move every instance that the plan is for, each in one atomic step, and return what became of them. ``rate``:
        instances a second at most, from 1 to 1,000,000; 0 for no limit.

        Each instance is judged by what it is at that moment. A plan made by ``inverse`` goes back: of the instances
        that the plan moved, one that took no step since is restored from its undo record; all others stay. The call may
        be repeated at any time: instances that have the version already are counted as ``already``. Raises PlanError
        where a version of the plan is gone (SB606, SB612), UnknownMachine, BadInput (SB402).
        """
        return await self._call(Engine.migrate, plan, actor=actor, reason=reason, rate=rate)

    async def dry_run(
        self,
        plan: MigrationPlan,
        *,
        share: float = 0.33,
        each: Callable[[MigrationClass, Sequence[str]], None] | None = None,
    ) -> DryRun:
        """Compute what a plan would do with every instance of its machine; change nothing.

        Each instance counts once, in the class of what it was when the walk came to it; one that exists when the walk
        of its partition ends is counted in any case. ``share``: the part of the server's time that it takes at most.
        ``each`` is called with a class and the ids of its instances, page by page. Raises UnknownMachine, PlanError,
        BadInput, and EngineUnavailable where a partition does not answer, since a part of the fleet is no result.
        """
        return await self._call(Engine.dry_run, plan, share=share, each=each)

    async def classify(self, plan: MigrationPlan, ids: Iterable[str]) -> dict[str, MigrationClass]:
        """Compute what a plan would do with some instances; change nothing. Returns id -> its class, without those that
        do not exist. Raises as ``dry_run``."""
        return await self._call(Engine.classify, plan, ids)

    async def replay(
        self,
        machine: str,
        version: int | Mapping[str, Any] | CompiledDefinition,
        sample: int | None = None,
        *,
        states: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Replay:
        """Run recorded histories on a version, by the interpreter in Redis and without writing, and compare each step:
        configuration, transitions, and the data fields that both versions have.

        ``version``: a published one, or a definition that is not published. ``sample``: the number of instances, spread
        over partitions and states; None for all. Each history runs from its creation to its first difference.
        ``states``: state of a recorded version -> state, or states, of the replayed one, where names differ. It leaves
        the server half of its time. Raises BadInput, DefinitionError, UnknownMachine.
        """
        return await self._call(Engine.replay, machine, version, sample, states=states)

    async def version_choice(self, machine: str) -> VersionChoice:
        """Return which version new instances get, and the ``turn`` of it. One round trip."""
        return await self._call(Engine.version_choice, machine)

    async def rollout(self, machine: str) -> Rollout | None:
        """Return the version that is rolled out, or whose roll-out was stopped; None when there is none."""
        return await self._call(Engine.rollout, machine)

    async def rollouts(self, *, recent: bool = False) -> dict[str, Rollout]:
        """Return machine -> its roll-out, of all machines that have one. ``recent``: as of the latest change that this
        process can see without reading every machine; for pages and duties that ask again and again."""
        return await self._call(Engine.rollouts, recent=recent)

    async def set_rollout(
        self, machine: str, percent: float, *, guard: GuardSettings = None, **options: Unpack[PolicyOptions]
    ) -> Rollout | None:
        """Raise or lower the percentage of new instances that get the version; a stopped roll-out goes on. An id that
        gets the version at a percentage gets it at each higher one. 100 finishes the roll-out. ``guard``: new settings,
        by default those it has."""
        return await self._call(Engine.set_rollout, machine, percent, guard=guard, **options)

    async def start_rollout(
        self,
        machine: str,
        version: int,
        percent: float,
        *,
        guard: GuardSettings = None,
        **options: Unpack[PolicyOptions],
    ) -> Rollout | None:
        """Roll out a published version that is not the current one, in place of one that is rolled out now."""
        return await self._call(Engine.start_rollout, machine, version, percent, guard=guard, **options)

    async def stop_rollout(self, machine: str, **options: Unpack[PolicyOptions]) -> Rollout | None:
        """Give new instances the base version again. Those that have the new version keep it."""
        return await self._call(Engine.stop_rollout, machine, **options)

    async def finish_rollout(self, machine: str, **options: Unpack[PolicyOptions]) -> None:
        """Make the version that is rolled out the current one; the roll-out is over."""
        await self._call(Engine.finish_rollout, machine, **options)

    async def guard_rollout(self, machine: str, *, actor: str = "guard") -> Rollout | None:
        """Stop the roll-out of a machine if its guard says so; return it then, else None. Workers call this all the
        time."""
        return await self._call(Engine.guard_rollout, machine, actor=actor)

    async def align_versions(self, machine: str) -> int:
        """Finish what a killed publisher has left: bring the first partition's current version and roll-out to the
        others; return how many were behind."""
        return await self._call(Engine.align_versions, machine)

    async def unsettled_machines(self, among: Collection[str] | None = None) -> list[str]:
        """List the machines, or those ``among`` some, of which a partition follows the first one no longer. Two
        round trips, however many machines there are."""
        return await self._call(Engine.unsettled_machines, among)

    async def pin(self, machine: str, version: int | None, **options: Unpack[PolicyOptions]) -> VersionPin | None:
        """Make a version current and keep it so, whatever is published, until it is unpinned with None: then the
        version that was published last becomes current. No plan moves instances of a pinned version."""
        return await self._call(Engine.pin, machine, version, **options)

    async def get_pin(self, machine: str) -> VersionPin | None:
        """Return the version to which a machine is pinned, or None."""
        return await self._call(Engine.get_pin, machine)

    async def withdraw_version(
        self,
        machine: str,
        version: int,
        withdrawn: bool = True,
        *,
        instead: int | None = None,
        **options: Unpack[PolicyOptions],
    ) -> Withdrawal | None:
        """Withdraw a version: no new instance gets it, and no plan leads to it; its roll-out stops. With
        ``withdrawn=False`` take that back. ``instead``: the version that becomes current in place of a current one;
        ``expect``: the ``turn`` the caller saw."""
        return await self._call(Engine.withdraw_version, machine, version, withdrawn, instead=instead, **options)

    async def withdrawn_versions(self, machine: str) -> dict[int, Withdrawal]:
        """Return the withdrawn versions by their numbers."""
        return await self._call(Engine.withdrawn_versions, machine)

    async def version_figures(self, machine: str, *, sample: int = 100) -> PartialList[VersionFigures]:
        """Return the figures of each published version. ``sample``: the instances of each state, in each partition,
        whose time in the state is read; 0 for no times. The attribute ``missing`` of the result lists the roots of
        partitions that did not answer, whose figures are not in it."""
        return await self._call(Engine.version_figures, machine, sample=sample)

    async def simulate(
        self,
        definition: Mapping[str, Any] | CompiledDefinition | str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        id: str = "simulated",
        now: int = 1767225600000,
        parent: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> list[SimulatedStep]:
        """Create an instance in memory and give it events, by the interpreter in Redis and without reading or writing a
        key; return a record for each step, the creation first.

        ``definition``: a definition, or the name of a published machine. ``events``: each is the name of an event, a
        pair of name and payload, or an object: ``{"event", "payload", "groups"}``; ``{"advance": ms, "5m" or "next"}``,
        which winds the clock and fires the timers that become due; ``{"edit": data}``, as the repair; ``{"job": invoke,
        "done": result}`` or ``{"job", "failed": error, "kind", "attempts"}``; ``{"child": invoke, "done"}``,
        ``{"child", "failed"}`` or ``{"child", "event", "payload"}``; ``{"message": event, "payload", "from":
        {"machine", "id"}}``. ``now``: ms at which the clock begins. ``parent``: ``{"machine", "id", "invoke"}`` of an
        instance that invoked this one. ``seconds``: how long it may take.

        An event that is refused is a record like any other. Raises DefinitionError, BadPayload for data that does not
        fit, BadInput for an input that makes no sense where it stands, UnknownMachine.
        """
        return await self._call(
            Engine.simulate, definition, events, data, id=id, now=now, parent=parent, seconds=seconds
        )

    async def preview_events(
        self,
        machine: str,
        id: str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        now: int | None = None,
    ) -> list[SimulatedStep]:
        """Give events, as ``simulate`` takes them, to a copy in memory of an instance as it is now; change nothing, and
        return a record for each step. With ``data``, to an instance that is created with it. Which jobs wait is not
        known to the copy.

        Raises UnknownInstance, Suspended, BadPayload for data that does not fit, BadInput.
        """
        return await self._call(Engine.preview_events, machine, id, events, data, now=now)
